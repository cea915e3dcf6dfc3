//! Convex piecewise-quadratic losses: of one margin, and of the margins against every rival. The one place where the pieces of a
//! machine's formula stand.

mod block;
mod margin;
mod rivals;

pub use block::RowBlock;
pub use margin::MarginLoss;
pub use rivals::{CrammerSinger, Frozen, OdmLoss, Response, RivalLoss, WestonWatkins};
