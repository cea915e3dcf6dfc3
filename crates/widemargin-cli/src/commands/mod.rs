//! The commands, one file each.

pub mod audit;
mod average;
pub mod coefficients;
pub mod compare;
mod conclusion;
mod contest;
pub mod convert;
pub mod cross_validate;
pub mod export;
pub mod help;
pub mod info;
pub mod margins;
mod pictures;
pub mod predict;
mod reliability;
pub mod reproduce;
mod scores;
pub mod shell;
pub mod split;
pub mod sweep;
pub mod train;
pub mod tune;
pub mod verify;
mod words;
