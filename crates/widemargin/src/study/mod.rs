//! Studies: how good a model is on rows it never saw, and several machines side by side on one protocol.
//! Statistics and protocols live here; reading, training and printing do not.

mod compare;
mod evaluation;
mod profile;
pub mod statistics;

pub use compare::{Comparison, Entry, Overall, Protocol, Verdict, compare, overall};
pub use evaluation::{Evaluation, evaluate};
pub use profile::{ClassCount, Profile, profile};
