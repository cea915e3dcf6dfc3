//! Convex piecewise-quadratic losses: of one margin, and of the margins against every rival. The one place where the pieces of a
//! machine's formula stand.

mod margin;
mod rivals;

pub use margin::MarginLoss;
pub use rivals::{CrammerSinger, Frozen, OdmLoss, Response, RivalLoss, RowBlock, WestonWatkins};
