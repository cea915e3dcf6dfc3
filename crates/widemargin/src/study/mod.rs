//! Studies: how good a model is on rows it never saw, and several machines side by side on one protocol.
//! Statistics and protocols live here; reading, training and printing do not.

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
