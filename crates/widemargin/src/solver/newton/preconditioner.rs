//! What preconditions conjugate gradients over kernel coefficients.

use crate::data::dense_dot;
use crate::kernel::LowRank;
use crate::linalg::{self, Cholesky};
use crate::{Error, Result};
use rayon::prelude::*;

/// `M⁻¹ = I − B (I + BᵀB)⁻¹ Bᵀ` for `M = I + B Bᵀ`, `B = diag(√h) F_S`, from `F` of `G ≈ F Fᵀ`.
pub struct Preconditioner<'a> {
    part: &'a LowRank,
    /// `S`
    chosen: Vec<usize>,
    /// `√h` of each of them.
    root: Vec<f64>,
    /// Of `I + BᵀB`.
    factor: Cholesky,
}

/// `BᵀB = Σ h_i f_i f_iᵀ` and the `h` that it is of.
pub struct WeightedGram {
    rank: usize,
    h: Vec<f64>,
    matrix: Vec<f64>,
}

/// Rows of `F` that a thread takes at a time.
const CHUNK: usize = 512;

impl WeightedGram {
    /// The same for other `h`: rows whose `h` changed are added or taken away, unless they are as many as there are.
    fn moved(before: Option<Self>, part: &LowRank, h: &[f64]) -> Self {
        let rank = part.rank.max(1);
        let anew = || Self { rank, h: vec![0.0; h.len()], matrix: vec![0.0; rank * rank] };
        let near = |gram: &Self| {
            let changed = gram.h.iter().zip(h).filter(|(before, now)| before != now).count();
            gram.rank == rank && gram.h.len() == h.len() && changed < h.iter().filter(|h| **h > 0.0).count()
        };
        let mut gram = before.filter(near).unwrap_or_else(anew);
        for sign in [1.0, -1.0] {
            let rows: Vec<(usize, f64)> = (0..h.len())
                .map(|i| (i, sign * (h[i] - gram.h[i])))
                .filter(|(_, change)| *change > 0.0)
                .map(|(i, change)| (i, change.sqrt()))
                .collect();
            let mut scaled = Vec::new();
            for rows in rows.chunks(8 * CHUNK) {
                scaled.clear();
                scaled.extend(rows.iter().flat_map(|(i, root)| part.row(*i).iter().map(move |f| root * f64::from(*f))));
                linalg::add_gram(&mut gram.matrix, &scaled, rank, sign, true);
            }
        }
        gram.h.copy_from_slice(h);
        gram
    }

    /// The factor of `I + BᵀB`.
    fn factor(&self) -> Result<Cholesky> {
        let mut matrix = self.matrix.clone();
        matrix.iter_mut().step_by(self.rank + 1).for_each(|pivot| *pivot += 1.0);
        Cholesky::new(matrix, self.rank)
            .map_err(|_| Error::Numeric { place: "preconditioner", reason: "it is not positive definite".into() })
    }
}

impl<'a> Preconditioner<'a> {
    /// From `F`, and `√h` of the rows `S` among `n`; what the one before was made of is gone on from.
    pub fn new(
        part: &'a LowRank,
        n: usize,
        chosen: Vec<usize>,
        root: Vec<f64>,
        before: &mut Option<WeightedGram>,
    ) -> Result<Self> {
        let mut h = vec![0.0; n];
        chosen.iter().zip(&root).for_each(|(&i, root)| h[i] = root * root);
        let gram = WeightedGram::moved(before.take(), part, &h);
        let factor = gram.factor()?;
        *before = Some(gram);
        Ok(Self { part, chosen, root, factor })
    }

    /// Writes `M⁻¹ v`.
    pub fn apply(&self, v: &[f64], out: &mut [f64]) {
        let rows = || self.chosen.par_chunks(CHUNK).zip(self.root.par_chunks(CHUNK)).zip(v.par_chunks(CHUNK));
        let sums = rows().map(|((chosen, root), v)| {
            let mut sum = vec![0.0; self.part.rank.max(1)];
            linalg::wide(
                #[inline(always)]
                || {
                    for ((&i, root), v) in chosen.iter().zip(root).zip(v) {
                        let factor = root * v;
                        sum.iter_mut().zip(self.part.row(i)).for_each(|(sum, f)| *sum += factor * f64::from(*f));
                    }
                },
            );
            sum
        });
        let mut inner = linalg::add_up(sums.collect());
        self.factor.solve(&mut inner);
        out.par_chunks_mut(CHUNK).zip(rows()).for_each(|(out, ((chosen, root), v))| {
            linalg::wide(
                #[inline(always)]
                || {
                    for (((out, &i), root), v) in out.iter_mut().zip(chosen).zip(root).zip(v) {
                        *out = v - root * dense_dot(self.part.row(i), &inner);
                    }
                },
            );
        });
    }

    /// The diagonal of `M⁻¹`: `1 − ‖L⁻¹ b_i‖²`, `L Lᵀ = I + BᵀB`.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let block = |(chosen, root): (&[usize], &[f64])| {
            let scaled = |(&i, root): (&usize, &f64)| self.part.row(i).iter().map(|f| root * f64::from(*f)).collect();
            let mut rows: Vec<f64> = chosen.iter().zip(root).flat_map::<Vec<f64>, _>(scaled).collect();
            self.factor.half_solve(&mut rows, false);
            rows.chunks_exact(self.part.rank.max(1)).map(|b| 1.0 - linalg::dot(b, b)).collect::<Vec<f64>>()
        };
        self.chosen.par_chunks(CHUNK).zip(self.root.par_chunks(CHUNK)).flat_map_iter(block).collect()
    }
}
