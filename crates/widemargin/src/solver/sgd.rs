//! The papers' stochastic solvers (placeholder).
use super::fit::Solved;
use super::passes::LinearRows;
use super::{Problem, Settings};
use crate::Result;
use crate::control::Control;
use crate::data::Rows;

/// asgd
pub fn asgd<X: Rows>(_p: &Problem<'_>, _d: LinearRows<'_, X>, _s: &Settings, _c: Control<'_>) -> Result<Solved> {
    Err(crate::Error::Usage("asgd".into()))
}
/// svrg
pub fn svrg<X: Rows>(_p: &Problem<'_>, _d: LinearRows<'_, X>, _s: &Settings, _c: Control<'_>) -> Result<Solved> {
    Err(crate::Error::Usage("svrg".into()))
}
