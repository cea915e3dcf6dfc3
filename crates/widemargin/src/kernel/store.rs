//! Rows of the kernel matrix within a memory budget.

use super::{KernelRows, Stored};
use crate::Result;
use crate::control::Control;
use crate::linalg;
use rayon::prelude::*;

/// Rows of the kernel matrix, kept as `T`: all of them, or those that fit, of which the ones unused for longest make room for
/// others.
pub struct RowStore<'a, T> {
    rows: Held<'a, T>,
    control: Control<'a>,
}

enum Held<'a, T> {
    /// A matrix that is there already.
    Whole(&'a [Vec<T>]),
    /// What fits.
    Some(Recent<'a, T>),
}

/// The rows of late use.
struct Recent<'a, T> {
    kernel: &'a KernelRows<'a>,
    /// The values of each row that is held.
    rows: Vec<Option<Vec<T>>>,
    /// When each row was last asked for.
    used: Vec<u64>,
    held: usize,
    capacity: usize,
    clock: u64,
}

impl<'a, T: Stored> RowStore<'a, T> {
    /// An empty store of at most `memory` bytes (but at least two rows).
    pub fn new(kernel: &'a KernelRows<'a>, memory: u64, control: Control<'a>) -> Self {
        let n = kernel.len();
        let row = (size_of::<T>() * n.max(1)) as u64;
        let capacity = (memory / row).clamp(2, n.max(2) as u64) as usize;
        let rows = (0..n).map(|_| None).collect();
        let recent = Recent { kernel, rows, used: vec![0; n], held: 0, capacity, clock: 0 };
        Self { rows: Held::Some(recent), control }
    }

    /// All rows of a matrix that is there already.
    pub fn whole(rows: &'a [Vec<T>], control: Control<'a>) -> Self {
        Self { rows: Held::Whole(rows), control }
    }

    /// How many rows fit.
    pub fn capacity(&self) -> usize {
        match &self.rows {
            Held::Whole(rows) => rows.len(),
            Held::Some(recent) => recent.capacity,
        }
    }

    /// `k(x_i, x_i)`
    pub fn diagonal(&self, i: usize) -> f64 {
        match &self.rows {
            Held::Whole(rows) => rows[i][i].into(),
            Held::Some(recent) => recent.kernel.diagonal(i),
        }
    }

    /// Makes sure that the chosen rows, no more than fit, are held.
    pub fn hold(&mut self, chosen: &[usize]) -> Result<()> {
        match &mut self.rows {
            Held::Whole(_) => Ok(()),
            Held::Some(recent) => recent.hold(chosen, self.control),
        }
    }

    /// Row `i`, which must be held.
    pub fn row(&self, i: usize) -> &[T] {
        match &self.rows {
            Held::Whole(rows) => &rows[i],
            Held::Some(recent) => recent.rows[i].as_deref().expect("the row is held"),
        }
    }

    /// The kernel values of the chosen rows, which must be held, with each other, row-major.
    pub fn square(&self, chosen: &[usize]) -> Vec<T> {
        if let Held::Some(recent) = &self.rows
            && let Some(square) = T::square(recent.kernel, chosen)
        {
            return square;
        }
        let k = chosen.len();
        let mut square = vec![T::default(); k * k];
        square.par_chunks_mut(k.max(1)).zip(chosen).with_min_len(16).for_each(|(out, &i)| {
            let row = self.row(i);
            out.iter_mut().zip(chosen).for_each(|(out, &j)| *out = row[j]);
        });
        square
    }

    /// `Σ_j c_j k(x_i, x_j)` for every row `x_i`, over the given pairs of `j` and `c_j`. Holds none of them.
    pub fn combine(&self, terms: &[(usize, f64)]) -> Result<Vec<f64>> {
        match &self.rows {
            Held::Some(recent) => recent.kernel.combine::<T>(terms, self.control),
            Held::Whole(rows) => {
                let mut sums = vec![0.0; rows.len()];
                let terms: Vec<(f64, &[T])> = terms.iter().map(|&(j, c)| (c, rows[j].as_slice())).collect();
                linalg::add_rows(&mut sums, &terms);
                Ok(sums)
            }
        }
    }
}

impl<T: Stored> Recent<'_, T> {
    fn hold(&mut self, chosen: &[usize], control: Control<'_>) -> Result<()> {
        self.clock += 1;
        chosen.iter().for_each(|&i| self.used[i] = self.clock);
        let missing: Vec<usize> = chosen.iter().copied().filter(|&i| self.rows[i].is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut values = self.make_room((self.held + missing.len()).saturating_sub(self.capacity));
        values.resize_with(missing.len(), Vec::new);
        self.kernel.chosen(&missing, &mut values, control)?;
        self.held += missing.len();
        missing.into_iter().zip(values).for_each(|(i, values)| self.rows[i] = Some(values));
        Ok(())
    }

    /// Gives up `count` rows, those unused for longest first, and hands back their memory.
    fn make_room(&mut self, count: usize) -> Vec<Vec<T>> {
        if count == 0 {
            return Vec::new();
        }
        let idle = |i: &usize| self.rows[*i].is_some() && self.used[*i] < self.clock;
        let mut oldest: Vec<(u64, usize)> = (0..self.rows.len()).filter(idle).map(|i| (self.used[i], i)).collect();
        oldest.sort_unstable();
        oldest.truncate(count);
        self.held -= oldest.len();
        oldest.into_iter().filter_map(|(_, i)| self.rows[i].take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};
    use crate::kernel::Kernel;
    use crate::random::Random;

    #[test]
    fn rows_are_right_whatever_had_to_leave() {
        let (m, d, mut random) = (90, 3, Random::new(4, 0));
        let values: Vec<f64> = (0..m * d).map(|_| random.normal()).collect();
        let matrix = Matrix::DenseF64(Dense::new(m, d, values).unwrap());
        let kernel = KernelRows::new(Kernel::Rbf { gamma: 0.5 }, &matrix, 0.0).rounded(1e-5);
        let whole = kernel.matrix(Control::default()).unwrap();
        let mut store = RowStore::<f32>::new(&kernel, 4 * 90 * 20, Control::default());
        assert_eq!(store.capacity(), 20);
        for _ in 0..30 {
            let mut chosen: Vec<usize> = (0..m).collect();
            random.shuffle(&mut chosen);
            chosen.truncate(1 + random.below(20));
            store.hold(&chosen).unwrap();
            let Held::Some(recent) = &store.rows else { panic!("a part of the rows") };
            assert!(recent.rows.iter().flatten().count() == recent.held && recent.held <= 20);
            let square = store.square(&chosen);
            for (p, &i) in chosen.iter().enumerate() {
                let close = |(a, b): (&f32, &f64)| (f64::from(*a) - b).abs() < 1e-6;
                assert!(store.row(i).iter().zip(&whole[i * m..]).all(close));
                assert!(
                    chosen.iter().enumerate().all(|(q, &j)| close((&square[p * chosen.len() + q], &whole[i * m + j])))
                );
            }
        }
    }
}
