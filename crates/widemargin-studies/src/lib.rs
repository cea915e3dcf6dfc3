//! Studies over [`widemargin`]: several machines side by side on the same splits of data, the papers' tables and their
//! figures, accuracy over a parameter. Splits, protocols and statistics live here; learning is the library's, and what a
//! user types or reads is the command line's.

mod compare;
mod contest;
mod evaluation;
pub mod papers;
mod profile;
mod record;
pub mod statistics;

pub use compare::{
    Chosen, Comparison, Entry, Overall, Protocol, Standing, Verdict, Watch, compare, expected_seconds, overall,
};
pub use contest::{Contestant, Trial, Tuning};
pub use evaluation::{Evaluation, evaluate};
pub use profile::{ClassCount, Profile, profile};
pub use record::Record;
