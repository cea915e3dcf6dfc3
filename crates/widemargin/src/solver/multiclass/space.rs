//! Where the `k` score functions live: weights of a linear machine, or scores of all training rows under a kernel.

use crate::control::Control;
use crate::data::Rows;
use crate::kernel::{KernelKind, KernelRows};
use crate::linalg::{axpy, wide};
use crate::{Error, Remedy, Result};

/// The functions `f_l(x) = Σ_i v_i^l k(x_i, x)`, changed a row at a time.
pub trait Space: Send + Sync {
    /// `k(x_i, x_i)`
    fn diagonal(&self, i: usize) -> f64;
    /// `f_l(x_i)` of every class; `out` has room for [`Space::width`] numbers.
    fn scores(&self, i: usize, out: &mut [f64]);
    /// `f_l(x_i)` of some classes.
    fn scores_of(&self, i: usize, classes: &[u32], out: &mut [f64]);
    /// `v_i^l += a` for each `(l, a)`.
    fn add(&mut self, i: usize, change: &[(u32, f64)]);
    /// `v = 0`.
    fn clear(&mut self);
    /// The rows, if the functions are linear in them.
    fn rows(&self) -> Option<&dyn Rows>;
    /// Takes `w_l`, a vector a class, if the functions are linear.
    fn set_weights(&mut self, weights: &mut dyn Iterator<Item = &[f64]>);
    /// How many numbers [`Space::scores`] writes: `k`, rounded up.
    fn width(&self) -> usize;
    /// `w_l`, a vector a class (and zeros up to the width), if the functions are linear.
    fn weights(&self) -> Option<Vec<Vec<f64>>>;
}

/// Weights `w_l = Σ_i v_i^l x_i`, feature after feature with the classes side by side, so that the scores of a row are
/// a stream of additions.
pub struct LinearSpace<'a, R> {
    rows: &'a R,
    stride: usize,
    norms: Vec<f64>,
    weights: Vec<f64>,
}

/// Up to this many classes the sums of a row stay in registers, some classes at a time; beyond, feature by feature.
const REGISTER_CLASSES: usize = 64;

impl<'a, R: Rows> LinearSpace<'a, R> {
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

impl<R: Rows + Send> Space for LinearSpace<'_, R> {
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

/// The scores of all training rows, class after class: `k × m` numbers, kept up to date with kernel rows.
pub struct KernelSpace<'a> {
    kernel: KernelRows<'a>,
    classes: usize,
    diagonal: Vec<f64>,
    scores: Vec<f64>,
    rows: RowStore,
}

impl<'a> KernelSpace<'a> {
    /// All scores zero. The scores must fit the budget; what is left of it holds the kernel matrix, or its rows of
    /// late use.
    pub fn new(kernel: KernelRows<'a>, classes: usize, memory: u64, control: Control<'_>) -> Result<Self> {
        let m = kernel.len();
        let needed = (m * classes * 8) as u64;
        let Some(left) = memory.checked_sub(needed).filter(|left| *left >= 8 * m as u64) else {
            return Err(Error::Memory {
                what: format!("a kernel machine's scores of {m} rows in {classes} classes"),
                needed: needed + 8 * m as u64,
                budget: memory,
                advice: [
                    Remedy::Raise("memory"),
                    Remedy::Use("kernel", KernelKind::Linear.to_string()),
                    Remedy::Do("take fewer rows"),
                ]
                .into(),
            });
        };
        let diagonal = (0..m).map(|i| kernel.diagonal(i)).collect();
        let rows = RowStore::new(&kernel, left, control)?;
        Ok(Self { kernel, classes, diagonal, scores: vec![0.0; m * classes], rows })
    }
}

impl Space for KernelSpace<'_> {
    fn diagonal(&self, i: usize) -> f64 {
        self.diagonal[i]
    }

    fn scores(&self, i: usize, out: &mut [f64]) {
        for (out, scores) in out.iter_mut().zip(self.scores.chunks_exact(self.diagonal.len())) {
            *out = scores[i];
        }
    }

    fn scores_of(&self, i: usize, classes: &[u32], out: &mut [f64]) {
        for (out, &l) in out.iter_mut().zip(classes) {
            *out = self.scores[l as usize * self.diagonal.len() + i];
        }
    }

    fn add(&mut self, i: usize, change: &[(u32, f64)]) {
        let m = self.diagonal.len();
        let row = self.rows.row(&self.kernel, i);
        for &(l, a) in change {
            axpy(a, row, &mut self.scores[l as usize * m..][..m]);
        }
    }

    fn clear(&mut self) {
        self.scores.fill(0.0);
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

/// The kernel matrix, whole if it fits; else the rows that were used last.
enum RowStore {
    Whole(Vec<f64>),
    Some { slots: Vec<f64>, row_of: Vec<usize>, slot_of: Vec<usize>, used: Vec<u64>, clock: u64 },
}

/// "No such row" and "no such slot".
const NONE: usize = usize::MAX;

impl RowStore {
    fn new(kernel: &KernelRows<'_>, memory: u64, control: Control<'_>) -> Result<Self> {
        let m = kernel.len();
        if (m as u64).saturating_mul(m as u64).saturating_mul(8) <= memory {
            return Ok(Self::Whole(kernel.matrix(control)?));
        }
        let count = ((memory / (8 * m as u64)) as usize).clamp(1, m);
        Ok(Self::Some {
            slots: vec![0.0; count * m],
            row_of: vec![NONE; count],
            slot_of: vec![NONE; m],
            used: vec![0; count],
            clock: 0,
        })
    }

    fn row(&mut self, kernel: &KernelRows<'_>, i: usize) -> &[f64] {
        let m = kernel.len();
        match self {
            Self::Whole(matrix) => &matrix[i * m..(i + 1) * m],
            Self::Some { slots, row_of, slot_of, used, clock } => {
                *clock += 1;
                let mut slot = slot_of[i];
                if slot == NONE {
                    slot = (0..used.len()).min_by_key(|&s| used[s]).unwrap_or(0);
                    if row_of[slot] != NONE {
                        slot_of[row_of[slot]] = NONE;
                    }
                    (row_of[slot], slot_of[i]) = (i, slot);
                    kernel.row(i, &mut slots[slot * m..(slot + 1) * m]);
                }
                used[slot] = *clock;
                &slots[slot * m..(slot + 1) * m]
            }
        }
    }
}
