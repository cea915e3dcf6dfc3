//! The commands, one file each.

pub mod compare;
mod conclusion;
mod contest;
pub mod convert;
pub mod help;
pub mod info;
pub mod margins;
mod pictures;
pub mod predict;
pub mod reproduce;
pub mod shell;
pub mod sweep;
pub mod train;
pub mod tune;
pub mod verify;
mod words;
