//! Studies over [`widemargin`]: several machines side by side on the same splits of data, the papers' tables and their
//! figures, accuracy over a parameter. Splits, protocols and statistics live here; learning is the library's, and what a
//! user types or reads is the command line's.

mod compare;
mod contestant;
mod curves;
pub mod papers;
mod profile;
mod record;
pub mod statistics;
mod sweep;
mod trial;

pub use compare::{
    Chosen, Comparison, Entry, Match, Overall, Protocol, Standing, Test, Verdict, Watch, adjust, compare,
    expected_seconds, groups, overall,
};
pub use contestant::{Amendment, Builder, Common, Contestant, Tries, Tuning, contestants, reference};
pub use curves::{Bin, area, calibration_error, reliability, roc};
pub use profile::{ClassCount, Profile, class_counts, profile};
pub use record::Record;
pub use sweep::{Curve, Sweep};
pub use trial::Trial;
