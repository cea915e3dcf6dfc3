//! Where the `k` score functions live: weights of a linear machine, or scores of all training rows under a kernel.

use crate::Result;
use crate::control::Control;
use crate::data::Rows;
use crate::kernel::{LowRank, RowStore, Stored};
use crate::linalg::{add_rows, axpy, wide};
use crate::solver::newton::KernelMatrix;
use std::collections::BTreeMap;

/// The functions `f_l(x) = Σ_i v_i^l k(x_i, x)`, changed a row at a time.
pub trait Scores: Send + Sync {
    /// `k(x_i, x_i)`
    fn diagonal(&self, i: usize) -> f64;
    /// `f_l(x_i)` of every class; `out` has room for [`Scores::width`] numbers.
    fn scores(&self, i: usize, out: &mut [f64]);
    /// `f_l(x_i)` of some classes.
    fn scores_of(&self, i: usize, classes: &[u32], out: &mut [f64]);
    /// `v_i^l += a` for each `(l, a)`. Until they [settle](Scores::settle), the scores of rows outside an open block may lag.
    fn add(&mut self, i: usize, change: &[(u32, f64)]);
    /// How many rows are best worked on together; `None`: any, one after the other.
    fn block(&self) -> Option<usize> {
        None
    }
    /// From now on the scores of these rows, at most a [block](Scores::block), follow every change at once.
    fn open(&mut self, _rows: &[usize]) -> Result<()> {
        Ok(())
    }
    /// The scores of all rows follow what was added.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
    /// `v = 0`.
    fn clear(&mut self);
    /// Whether the kernel's matrix is there to be multiplied with.
    fn multiplies(&self) -> bool {
        false
    }
    /// The kernel's matrix times a column a class.
    fn multiply(&self, columns: &[f64]) -> Result<Vec<f64>> {
        Ok(vec![0.0; columns.len()])
    }
    /// `F` of `G ≈ F Fᵀ`, for systems with curvatures of these sizes, where the kernel's matrix is in tiles.
    fn low_rank(&self, _curvatures: &[f64], _control: Control<'_>) -> Result<Option<&LowRank>> {
        Ok(None)
    }
    /// Takes the scores of all rows, row after row, over a kernel.
    fn set_scores(&mut self, _scores: &[f64]) {}
    /// The rows, if the functions are linear in them.
    fn rows(&self) -> Option<&dyn Rows>;
    /// Takes `w_l`, a vector a class, if the functions are linear.
    fn set_weights(&mut self, weights: &mut dyn Iterator<Item = &[f64]>);
    /// How many numbers [`Scores::scores`] writes: `k`, rounded up.
    fn width(&self) -> usize;
    /// `w_l`, a vector a class (and zeros up to the width), if the functions are linear.
    fn weights(&self) -> Option<Vec<Vec<f64>>>;
}

/// Weights `w_l = Σ_i v_i^l x_i`, feature after feature with the classes side by side, so that the scores of a row are
/// a stream of additions.
pub struct ManyWeights<'a, R> {
    rows: &'a R,
    stride: usize,
    norms: Vec<f64>,
    weights: Vec<f64>,
}

/// Up to this many classes the sums of a row stay in registers, some classes at a time; beyond, feature by feature.
const REGISTER_CLASSES: usize = 64;

impl<'a, R: Rows> ManyWeights<'a, R> {
    /// All weights zero.
    pub fn new(rows: &'a R, classes: usize) -> Self {
        let stride = classes.next_multiple_of(4);
        let norms = (0..rows.rows()).map(|i| rows.norm2(i)).collect();
        Self { rows, stride, norms, weights: vec![0.0; rows.cols() * stride] }
    }

    /// The scores of `N` classes from `from` on.
    #[inline(always)]
    fn some<const N: usize>(&self, i: usize, from: usize, out: &mut [f64]) {
        let mut sums = [0.0; N];
        self.rows.visit(
            i,
            #[inline(always)]
            |j, x| {
                let at = j * self.stride + from;
                for (sum, w) in sums.iter_mut().zip(&self.weights[at..at + N]) {
                    *sum += x * w;
                }
            },
        );
        out[from..from + N].copy_from_slice(&sums);
    }

    /// The scores of all classes, feature by feature.
    #[inline(always)]
    fn all(&self, i: usize, out: &mut [f64]) {
        let out = &mut out[..self.stride];
        out.fill(0.0);
        self.rows.visit(
            i,
            #[inline(always)]
            |j, x| {
                for (sum, w) in out.iter_mut().zip(&self.weights[j * self.stride..][..self.stride]) {
                    *sum += x * w;
                }
            },
        );
    }

    /// `w_l += a_l x_i` for all of `N` classes, which is the stride.
    #[inline(always)]
    fn add_all<const N: usize>(&mut self, i: usize, change: &[(u32, f64)]) {
        let mut steps = [0.0; N];
        for &(l, a) in change {
            steps[l as usize] += a;
        }
        let weights = &mut self.weights;
        self.rows.visit(
            i,
            #[inline(always)]
            |j, x| {
                for (w, step) in weights[j * N..(j + 1) * N].iter_mut().zip(&steps) {
                    *w += x * step;
                }
            },
        );
    }
}

impl<R: Rows + Send> Scores for ManyWeights<'_, R> {
    fn diagonal(&self, i: usize) -> f64 {
        self.norms[i]
    }

    fn scores(&self, i: usize, out: &mut [f64]) {
        if self.stride > REGISTER_CLASSES {
            return wide(
                #[inline(always)]
                || self.all(i, out),
            );
        }
        wide(
            #[inline(always)]
            || {
                let mut from = 0;
                while from + 16 <= self.stride {
                    self.some::<16>(i, from, out);
                    from += 16;
                }
                match self.stride - from {
                    12 => self.some::<12>(i, from, out),
                    8 => self.some::<8>(i, from, out),
                    4 => self.some::<4>(i, from, out),
                    _ => {}
                }
            },
        );
    }

    fn scores_of(&self, i: usize, classes: &[u32], out: &mut [f64]) {
        out[..classes.len()].fill(0.0);
        self.rows.visit(i, |j, x| {
            let weights = &self.weights[j * self.stride..][..self.stride];
            for (sum, &l) in out.iter_mut().zip(classes) {
                *sum += x * weights[l as usize];
            }
        });
    }

    fn add(&mut self, i: usize, change: &[(u32, f64)]) {
        wide(
            #[inline(always)]
            || match self.stride {
                4 => self.add_all::<4>(i, change),
                8 => self.add_all::<8>(i, change),
                12 => self.add_all::<12>(i, change),
                16 => self.add_all::<16>(i, change),
                stride => self.rows.visit(i, |j, x| {
                    let weights = &mut self.weights[j * stride..][..stride];
                    for &(l, a) in change {
                        weights[l as usize] += x * a;
                    }
                }),
            },
        );
    }

    fn clear(&mut self) {
        self.weights.fill(0.0);
    }

    fn rows(&self) -> Option<&dyn Rows> {
        Some(self.rows)
    }

    fn set_weights(&mut self, weights: &mut dyn Iterator<Item = &[f64]>) {
        for (l, weights) in weights.enumerate() {
            for (j, w) in weights.iter().enumerate() {
                self.weights[j * self.stride + l] = *w;
            }
        }
    }

    fn width(&self) -> usize {
        self.stride
    }

    fn weights(&self) -> Option<Vec<Vec<f64>>> {
        let column = |l: usize| self.weights.iter().skip(l).step_by(self.stride).copied().collect();
        Some((0..self.stride).map(column).collect())
    }
}

/// The scores of all training rows, class after class: `k × m` numbers. While a block is open its rows' scores are kept up to
/// date with the block's own kernel matrix; those of all rows follow by one product with its kernel rows, when they are asked for.
pub struct ManyScores<'a, T> {
    classes: usize,
    diagonal: Vec<f64>,
    scores: Vec<f64>,
    rows: RowStore<'a, T>,
    /// What Newton's method multiplies with.
    matrix: Option<KernelMatrix<'a>>,
    block: OpenBlock<T>,
    /// Place of each row in the open block.
    place: Vec<Option<u32>>,
    /// Changes of other rows.
    pending: BTreeMap<usize, Vec<(u32, f64)>>,
}

/// Rows whose scores are at hand.
struct OpenBlock<T> {
    rows: Vec<usize>,
    /// Their kernel values with each other, row-major; of all rows those of the store serve.
    square: Vec<T>,
    /// Their scores, class after class, and by how much their coefficients have changed.
    scores: Vec<f64>,
    change: Vec<f64>,
}

/// Most bytes of a block's own kernel matrix: distant caches still hold it.
const SQUARE: usize = 64 << 20;
/// A block has at least so many rows if there are that many; see `decomposition`.
const LEAST: usize = 1024;
/// Where the coefficients of more than one row in so many change, a product with the whole matrix is quicker than their kernel rows.
const FEW_PENDING: usize = 16;

impl<'a, T: Stored> ManyScores<'a, T> {
    /// All scores zero.
    pub fn new(rows: RowStore<'a, T>, matrix: Option<KernelMatrix<'a>>, m: usize, classes: usize) -> Self {
        let diagonal = (0..m).map(|i| rows.diagonal(i)).collect();
        let block = OpenBlock { rows: Vec::new(), square: Vec::new(), scores: Vec::new(), change: Vec::new() };
        let (scores, place) = (vec![0.0; m * classes], vec![None; m]);
        Self { classes, diagonal, scores, rows, matrix, block, place, pending: BTreeMap::new() }
    }

    /// Where the score of a row in class 0 stands, that of the next class so many places on.
    fn strided(&self, i: usize) -> (&[f64], usize) {
        match self.place[i] {
            Some(p) => (&self.block.scores[p as usize..], self.block.rows.len()),
            None => (&self.scores[i..], self.diagonal.len()),
        }
    }

    /// Adds `Σ_j a_j k(x_j, ·)` to the scores of all rows; `terms` are `(j, a_j)` a class.
    fn combine(&mut self, terms: &[Vec<(usize, f64)>]) {
        let m = self.diagonal.len();
        for (scores, terms) in self.scores.chunks_exact_mut(m.max(1)).zip(terms) {
            let rows: Vec<(f64, &[T])> = terms.iter().map(|&(j, a)| (a, self.rows.row(j))).collect();
            add_rows(scores, &rows);
        }
    }

    /// Brings all scores up to date with the open block, and closes it.
    fn close(&mut self) {
        let OpenBlock { rows, scores, change, .. } = &mut self.block;
        let (rows, scores, change) = (std::mem::take(rows), std::mem::take(scores), std::mem::take(change));
        rows.iter().for_each(|&i| self.place[i] = None);
        if rows.len() == self.diagonal.len() {
            self.scores = scores;
        } else if !rows.is_empty() {
            let class =
                |change: &[f64]| rows.iter().copied().zip(change.iter().copied()).filter(|(_, a)| *a != 0.0).collect();
            let terms: Vec<Vec<(usize, f64)>> = change.chunks_exact(rows.len()).map(class).collect();
            self.combine(&terms);
        }
    }
}

impl<T: Stored> Scores for ManyScores<'_, T> {
    fn diagonal(&self, i: usize) -> f64 {
        self.diagonal[i]
    }

    fn scores(&self, i: usize, out: &mut [f64]) {
        let (scores, stride) = self.strided(i);
        out.iter_mut().zip(scores.iter().step_by(stride)).for_each(|(out, score)| *out = *score);
    }

    fn scores_of(&self, i: usize, classes: &[u32], out: &mut [f64]) {
        let (scores, stride) = self.strided(i);
        out.iter_mut().zip(classes).for_each(|(out, &l)| *out = scores[l as usize * stride]);
    }

    fn add(&mut self, i: usize, change: &[(u32, f64)]) {
        let Some(p) = self.place[i].map(|p| p as usize) else {
            self.pending.entry(i).or_default().extend_from_slice(change);
            return;
        };
        let OpenBlock { rows, square, scores, change: moved } = &mut self.block;
        let size = rows.len();
        let row = if square.is_empty() { self.rows.row(i) } else { &square[p * size..][..size] };
        wide(
            #[inline(always)]
            || {
                for &(l, a) in change {
                    let at = l as usize * size;
                    moved[at + p] += a;
                    scores[at..][..size].iter_mut().zip(row).for_each(|(score, value)| *score += a * (*value).into());
                }
            },
        );
    }

    fn block(&self) -> Option<usize> {
        let m = self.diagonal.len();
        let most = (SQUARE / size_of::<T>()).isqrt();
        Some((m / 5).clamp(LEAST, most).min(self.rows.capacity()).min(m))
    }

    fn open(&mut self, rows: &[usize]) -> Result<()> {
        self.settle()?;
        self.rows.hold(rows)?;
        self.block.square = if rows.len() == self.diagonal.len() { Vec::new() } else { self.rows.square(rows) };
        self.block.scores = if rows.len() == self.diagonal.len() {
            self.scores.clone()
        } else {
            let m = self.diagonal.len();
            (0..self.classes).flat_map(|l| rows.iter().map(move |&i| l * m + i)).map(|at| self.scores[at]).collect()
        };
        self.block.change = vec![0.0; self.classes * rows.len()];
        rows.iter().enumerate().for_each(|(p, &i)| self.place[i] = Some(p as u32));
        self.block.rows = rows.to_vec();
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.close();
        let m = self.diagonal.len();
        if let Some(matrix) = self.matrix.filter(|_| FEW_PENDING * self.pending.len() > m) {
            let mut columns = vec![0.0; m * self.classes];
            for (i, change) in std::mem::take(&mut self.pending) {
                change.iter().for_each(|&(l, a)| columns[l as usize * m + i] += a);
            }
            axpy(1.0, &matrix.multiply(&columns)?, &mut self.scores);
        }
        let pending: Vec<(usize, Vec<(u32, f64)>)> = std::mem::take(&mut self.pending).into_iter().collect();
        for part in pending.chunks(self.rows.capacity().min(LEAST)) {
            let rows: Vec<usize> = part.iter().map(|(i, _)| *i).collect();
            self.rows.hold(&rows)?;
            let mut terms = vec![Vec::new(); self.classes];
            for (i, change) in part {
                change.iter().for_each(|&(l, a)| terms[l as usize].push((*i, a)));
            }
            self.combine(&terms);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.close();
        self.pending.clear();
        self.scores.fill(0.0);
    }

    fn multiplies(&self) -> bool {
        self.matrix.is_some()
    }

    fn multiply(&self, columns: &[f64]) -> Result<Vec<f64>> {
        self.matrix.map_or_else(|| Ok(vec![0.0; columns.len()]), |matrix| matrix.multiply(columns))
    }

    fn low_rank(&self, curvatures: &[f64], control: Control<'_>) -> Result<Option<&LowRank>> {
        match self.matrix {
            Some(KernelMatrix::Tiled(tiles, rows)) => tiles.low_rank(rows, curvatures, control).map(Some),
            _ => Ok(None),
        }
    }

    fn set_scores(&mut self, scores: &[f64]) {
        let m = self.diagonal.len();
        self.close();
        self.pending.clear();
        for (i, scores) in scores.chunks_exact(self.classes).enumerate() {
            scores.iter().enumerate().for_each(|(l, score)| self.scores[l * m + i] = *score);
        }
    }

    fn rows(&self) -> Option<&dyn Rows> {
        None
    }

    fn set_weights(&mut self, _weights: &mut dyn Iterator<Item = &[f64]>) {}

    fn width(&self) -> usize {
        self.classes
    }

    fn weights(&self) -> Option<Vec<Vec<f64>>> {
        None
    }
}
