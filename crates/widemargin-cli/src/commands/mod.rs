//! The commands, one file each.

pub mod compare;
pub mod convert;
pub mod info;
pub mod margins;
mod pictures;
pub mod predict;
pub mod shell;
pub mod train;
pub mod tune;
mod words;
