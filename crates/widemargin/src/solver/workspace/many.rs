//! Problems with one score function a class.

use super::{LARGEST_SINGLE, Matrices, WHOLE, Workspace, random_rows};
use crate::control::Control;
use crate::kernel::{Gram, GramPrecision, Kernel, KernelKind, RowStore, TilePrecision};
use crate::loss::RivalLoss;
use crate::problem::{Bias, ScoreFunctions};
use crate::solver::Settings;
use crate::solver::many::{ManyDescent, ManyScores, ManyWeights, Scores};
use crate::solver::newton::KernelMatrix;
use crate::{Error, Remedy, Result, with_rows};

/// Of fewer rows, a kernel machine of many classes is solved by passes over them.
const FEW_BY_NEWTON: usize = 100;
/// Newton's method for many classes starts from the solution over one row in so many, of at least so many rows, to this gap.
const START_PART: usize = 8;
const START_ROWS: usize = 400;
const START_TOL: f64 = 0.03;
/// The part of the tolerance that rounding of kernel values to fixed point may take here.
const FIXED_PART: f64 = 0.1;

impl Workspace<'_> {
    /// Descent for a problem with one score function a class, from zero or, where Newton's method goes over the kernel's matrix of many
    /// rows, from the solution over some of them.
    pub fn descent<'w, L: RivalLoss>(
        &'w self,
        loss: L,
        codes: &'w [u32],
        classes: usize,
        bias: Bias,
        settings: Settings,
        control: Control<'w>,
    ) -> Result<ManyDescent<'w, L>> {
        let scores: Box<dyn Scores + 'w> = match self.kernel {
            Kernel::Linear => with_rows!(self.rows, x => Box::new(ManyWeights::new(x, classes))),
            _ => self.many_scores(classes, loss.curvature(), control)?,
        };
        let start = match scores.multiplies() && settings.max_iter.is_none() {
            true => self.start_over_some(&loss, codes, classes, bias, settings, control)?,
            false => None,
        };
        let mut descent = ManyDescent::new(scores, loss, codes, classes, bias, settings, control);
        if let Some((chosen, start)) = &start {
            descent.start_at(chosen, start)?;
        }
        Ok(descent)
    }

    /// The solution over some of the rows, of as much weight as all, if that is worth while; and which they are.
    fn start_over_some<L: RivalLoss>(
        &self,
        loss: &L,
        codes: &[u32],
        classes: usize,
        bias: Bias,
        settings: Settings,
        control: Control<'_>,
    ) -> Result<Option<(Vec<usize>, ScoreFunctions)>> {
        let m = codes.len();
        if m / START_PART < START_ROWS {
            return Ok(None);
        }
        let chosen = random_rows(m, m / START_PART, settings.seed);
        let rows = self.rows.select(&chosen);
        let rough = Settings { tol: START_TOL, ..settings };
        let quiet = Control { observer: None, ..control };
        let some: Vec<u32> = chosen.iter().map(|&i| codes[i]).collect();
        let few = Workspace::new(&rows, self.kernel, rough);
        let part = loss.some(&chosen, m as f64 / chosen.len() as f64);
        let mut few = few.descent(part, &some, classes, bias, rough, quiet)?;
        few.solve(START_TOL)?;
        Ok(Some((chosen, few.expansion())))
    }

    /// Scores of all rows in all classes: they must fit the memory, and what is left of it holds what is multiplied with and kernel
    /// rows. Tight tolerances go by kernel rows alone.
    fn many_scores<'w>(
        &'w self,
        classes: usize,
        curvature: Option<f64>,
        control: Control<'w>,
    ) -> Result<Box<dyn Scores + 'w>> {
        let m = self.rows.rows();
        let needed = (m as u64).saturating_mul(8 * classes as u64);
        let Some(left) = self.settings.memory.checked_sub(needed).filter(|left| *left >= 8 * m as u64) else {
            return Err(Error::Memory {
                what: format!("a kernel machine's scores of {m} rows in {classes} classes"),
                needed: needed.saturating_add(8 * m as u64),
                budget: self.settings.memory,
                advice: [
                    Remedy::Raise("memory"),
                    Remedy::Use("kernel", KernelKind::Linear.to_string()),
                    Remedy::Do("take fewer rows"),
                ]
                .into(),
            });
        };
        let single = GramPrecision::for_tolerance(self.settings.tol) == GramPrecision::Single
            && self.largest_diagonal() < LARGEST_SINGLE;
        // Of many rows a loss with kinks has few that support it: these are solved in blocks.
        let suits = curvature.is_some() || m <= WHOLE;
        let by_newton = single && suits && m >= FEW_BY_NEWTON && !self.is_indefinite();
        Ok(match &self.prepared {
            Some(rows) if by_newton => {
                let precision = match self.fixed_gap(curvature, m) {
                    _ if m <= WHOLE => TilePrecision::Double,
                    Some(gap) if gap <= FIXED_PART * self.settings.tol => TilePrecision::Fixed,
                    _ => TilePrecision::Single,
                };
                let tiles = self.tiles(rows, precision, control)?;
                let store = RowStore::<f32>::new(rows, left.saturating_sub(tiles.bytes()), control);
                Box::new(ManyScores::new(store, Some(KernelMatrix::Tiled(tiles, rows)), m, classes))
            }
            Some(rows) if Gram::bytes(m, GramPrecision::Double) > left => match single {
                true => Box::new(ManyScores::new(RowStore::<f32>::new(rows, left, control), None, m, classes)),
                false => Box::new(ManyScores::new(RowStore::<f64>::new(rows, left, control), None, m, classes)),
            },
            _ => {
                let gram = self.gram(GramPrecision::Double, control)?;
                let matrix = by_newton.then_some(KernelMatrix::Whole(gram));
                let rows = gram.rows::<f64>().unwrap_or_default();
                Box::new(ManyScores::new(RowStore::whole(rows, control), matrix, m, classes))
            }
        })
    }
}
