//! Rows of the kernel matrix within a memory budget.

use super::{KernelRows, Stored};
use crate::Result;
use crate::control::Control;
use rayon::prelude::*;

/// Rows of a kernel matrix, to be asked for by number.
pub trait HeldRows<T> {
    /// How many rows fit.
    fn capacity(&self) -> usize;
    /// `k(x_i, x_i)`
    fn diagonal(&self, i: usize) -> f64;
    /// Makes sure that the chosen rows, no more than fit, are held.
    fn hold(&mut self, chosen: &[usize]) -> Result<()>;
    /// Row `i`, which must be held.
    fn row(&self, i: usize) -> &[T];
    /// The kernel values of the chosen rows, which must be held, with each other, row-major.
    fn square(&self, chosen: &[usize]) -> Vec<T>;
    /// `Σ_j c_j k(x_i, x_j)` for every row `x_i`, over the given pairs of `j` and `c_j`. Holds none of them.
    fn combine(&self, terms: &[(usize, f64)]) -> Result<Vec<f64>>;
}

/// The values of held rows with each other, row-major.
pub fn picked<T: Stored>(held: &(impl HeldRows<T> + Sync), chosen: &[usize]) -> Vec<T> {
    let k = chosen.len();
    let mut square = vec![T::default(); k * k];
    square.par_chunks_mut(k.max(1)).zip(chosen).with_min_len(16).for_each(|(out, &i)| {
        let row = held.row(i);
        out.iter_mut().zip(chosen).for_each(|(out, &j)| *out = row[j]);
    });
    square
}

/// Rows of the kernel matrix, kept as `T`; those unused for longest make room for others.
pub struct RowStore<'a, T> {
    kernel: &'a KernelRows<'a>,
    /// The values of each row that is held.
    rows: Vec<Option<Vec<T>>>,
    /// When each row was last asked for.
    used: Vec<u64>,
    held: usize,
    capacity: usize,
    clock: u64,
    control: Control<'a>,
}

impl<'a, T: Stored> RowStore<'a, T> {
    /// An empty store of at most `memory` bytes (but at least two rows).
    pub fn new(kernel: &'a KernelRows<'a>, memory: u64, control: Control<'a>) -> Self {
        let n = kernel.len();
        let row = (size_of::<T>() * n.max(1)) as u64;
        let capacity = (memory / row).clamp(2, n.max(2) as u64) as usize;
        Self { kernel, rows: (0..n).map(|_| None).collect(), used: vec![0; n], held: 0, capacity, clock: 0, control }
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

impl<T: Stored> HeldRows<T> for RowStore<'_, T> {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.kernel.diagonal(i)
    }

    fn hold(&mut self, chosen: &[usize]) -> Result<()> {
        self.clock += 1;
        chosen.iter().for_each(|&i| self.used[i] = self.clock);
        let missing: Vec<usize> = chosen.iter().copied().filter(|&i| self.rows[i].is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut values = self.make_room((self.held + missing.len()).saturating_sub(self.capacity));
        values.resize_with(missing.len(), Vec::new);
        self.kernel.chosen(&missing, &mut values, self.control)?;
        self.held += missing.len();
        missing.into_iter().zip(values).for_each(|(i, values)| self.rows[i] = Some(values));
        Ok(())
    }

    fn row(&self, i: usize) -> &[T] {
        self.rows[i].as_deref().expect("the row is held")
    }

    fn square(&self, chosen: &[usize]) -> Vec<T> {
        T::square(self.kernel, chosen).unwrap_or_else(|| picked(self, chosen))
    }

    fn combine(&self, terms: &[(usize, f64)]) -> Result<Vec<f64>> {
        self.kernel.combine::<T>(terms, self.control)
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
            assert!(store.rows.iter().flatten().count() == store.held && store.held <= 20);
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
