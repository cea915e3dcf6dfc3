//! Inner products of rows that are too many for their matrix to be formed: it is multiplied with, several vectors at a time.

use crate::data::{Csr, Matrix, Rows};
use crate::linalg::{self, each_of};
use crate::with_rows;
use rayon::prelude::*;

/// Vectors of which sparse rows meet one number each at a time: a cache line, and a vector register of AVX-512.
const LANES: usize = 8;
/// Rows, or columns, that a thread takes at once.
const STRIDE: usize = 1024;
/// Numbers of a block of dense rows: 4 MB, beside which what a product of matrices costs to begin is little.
const BLOCK_NUMBERS: usize = 1 << 19;
/// Most rows of such a block: more make products of matrices no quicker.
const BLOCK_ROWS: usize = 512;

/// Of these so many a thread scales at once.
const HANDFUL: usize = 16;

/// One number of each of several vectors.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct LaneSums([f64; LANES]);

/// `G = √H X Xᵀ √H` of chosen rows, without a constant feature.
///
/// Of sparse rows a product is `√H X W`, `W = (√H X)ᵀ V`, for as many vectors at once as fill a cache line, which is then all that a
/// stored value costs: the rows serve the second half, a copy of them by columns the first, so that each sum is written once, by one
/// thread, in one order. Dense rows are scaled block by block and multiplied as matrices, with all vectors.
pub struct GramProduct<'a> {
    rows: &'a Matrix<'a>,
    chosen: &'a [usize],
    root: Vec<f64>,
    /// `(√H X)ᵀ` of sparse rows.
    columns: Option<Csr<'static, f64>>,
}

impl<'a> GramProduct<'a> {
    /// Of the chosen rows, with `√h` of each; `None` if they are more sparse rows than can be numbered by columns.
    pub fn new(rows: &'a Matrix<'a>, chosen: &'a [usize], root: Vec<f64>) -> Option<Self> {
        let columns = match rows.is_dense() {
            true => None,
            false => Some(with_rows!(rows, x => by_columns(x, chosen, &root))?),
        };
        Some(Self { rows, chosen, root, columns })
    }

    /// Bytes that it takes whatever it is multiplied with, and bytes for each vector.
    pub fn bytes(rows: &Matrix<'_>, chosen: &[usize]) -> (u64, u64) {
        let (k, d) = (chosen.len(), rows.cols());
        let (all, each) = match rows.is_dense() {
            true => (block_rows(d).min(k) * d * 8, 8 * d),
            false => (12 * rows.stored() + 8 * d + (2 * k + d) * size_of::<LaneSums>(), 0),
        };
        (all as u64, each as u64)
    }

    /// Adds `G` times each column of `v` to those of `out`.
    pub fn add(&self, v: &[f64], out: &mut [f64]) {
        let k = self.chosen.len().max(1);
        match &self.columns {
            Some(columns) => {
                for (v, out) in v.chunks(LANES * k).zip(out.chunks_mut(LANES * k)) {
                    self.add_sparse(columns, v, out);
                }
            }
            None => self.add_dense(v, out),
        }
    }

    fn add_sparse(&self, columns: &Csr<'static, f64>, v: &[f64], out: &mut [f64]) {
        let k = self.chosen.len();
        // Vectors that are solved for are zero.
        if v.iter().all(|v| *v == 0.0) {
            return;
        }
        let mut by_row = vec![LaneSums::default(); k];
        by_row.par_chunks_mut(STRIDE).enumerate().for_each(|(chunk, lanes)| {
            for (l, v) in v.chunks_exact(k).enumerate() {
                lanes.iter_mut().zip(&v[chunk * STRIDE..]).for_each(|(lanes, v)| lanes.0[l] = *v);
            }
        });
        let mut by_column = vec![LaneSums::default(); columns.rows()];
        each_of(by_column.chunks_mut(STRIDE), |chunk, lanes| {
            lanes.iter_mut().zip(chunk * STRIDE..).for_each(|(lanes, j)| *lanes = gathered(columns, j, &by_row));
        });
        with_rows!(self.rows, x => each_of(by_row.chunks_mut(STRIDE), |chunk, lanes| {
            lanes.iter_mut().zip(&self.chosen[chunk * STRIDE..]).for_each(|(lanes, &i)| {
                *lanes = gathered(x, i, &by_column);
            });
        }));
        out.par_chunks_mut(k).enumerate().for_each(|(l, out)| {
            let rows = by_row.iter().zip(&self.root);
            out.iter_mut().zip(rows).for_each(|(out, (lanes, root))| *out += root * lanes.0[l]);
        });
    }

    fn add_dense(&self, v: &[f64], out: &mut [f64]) {
        let (k, d) = (self.chosen.len(), self.rows.cols());
        if k == 0 || d == 0 {
            return;
        }
        let mut by_column = vec![0.0; v.len() / k * d];
        self.each_block(|from, block| linalg::add_transposed_product(&mut by_column, block, d, &v[from..], k));
        self.each_block(|from, block| linalg::add_product(&mut out[from..], k, block, d, &by_column));
    }

    /// Shows each block of `√H X`, row after row, with the number of its first row.
    fn each_block(&self, mut show: impl FnMut(usize, &[f64])) {
        let d = self.rows.cols();
        let most = block_rows(d);
        let mut block = vec![0.0; most.min(self.chosen.len()) * d];
        for (number, chosen) in self.chosen.chunks(most).enumerate() {
            let (from, block) = (number * most, &mut block[..chosen.len() * d]);
            with_rows!(self.rows, x => each_of(block.chunks_mut(HANDFUL * d), |part, rows| {
                let first = part * HANDFUL;
                for ((row, &i), root) in rows.chunks_exact_mut(d).zip(&chosen[first..]).zip(&self.root[from + first..]) {
                    x.visit(i, |j, value| row[j] = root * value);
                }
            }));
            show(from, block);
        }
    }
}

fn block_rows(d: usize) -> usize {
    (BLOCK_NUMBERS / d.max(1)).clamp(1, BLOCK_ROWS)
}

/// `Σ_j x_ij w_j` of a sparse row.
#[inline(always)]
fn gathered<X: Rows>(x: &X, i: usize, w: &[LaneSums]) -> LaneSums {
    let mut sums = LaneSums::default();
    x.visit(i, |j, value| sums.0.iter_mut().zip(&w[j].0).for_each(|(sum, w)| *sum += value * w));
    sums
}

/// `(√H X)ᵀ` of the chosen rows, by counting.
fn by_columns<X: Rows>(x: &X, chosen: &[usize], root: &[f64]) -> Option<Csr<'static, f64>> {
    let mut next = vec![0u64; x.cols() + 1];
    chosen.iter().for_each(|&i| x.visit(i, |j, _| next[j + 1] += 1));
    (1..next.len()).for_each(|j| next[j] += next[j - 1]);
    let (offsets, stored) = (next.clone(), next[x.cols()] as usize);
    let (mut rows, mut values) = (vec![0u32; stored], vec![0.0; stored]);
    for ((p, &i), root) in (0..).zip(chosen).zip(root) {
        x.visit(i, |j, value| {
            let place = next[j] as usize;
            next[j] += 1;
            (rows[place], values[place]) = (p, root * value);
        });
    }
    Csr::new(chosen.len(), offsets, rows, values).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::random::Random;

    /// Rows of which two thirds of the values are zero, dense and sparse.
    fn both(m: usize, d: usize, random: &mut Random) -> (Vec<f64>, [Matrix<'static>; 2]) {
        let values: Vec<f64> = (0..m * d).map(|_| if random.unit() < 0.3 { random.normal() } else { 0.0 }).collect();
        let (mut offsets, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks_exact(d) {
            for (j, v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                columns.push(j as u32);
                stored.push(*v);
            }
            offsets.push(columns.len() as u64);
        }
        let sparse = Matrix::SparseF64(Csr::new(d, offsets, columns, stored).unwrap());
        (values.clone(), [Matrix::DenseF64(Dense::new(m, d, values).unwrap()), sparse])
    }

    #[test]
    fn products_are_what_they_say_for_any_number_of_vectors() {
        let (m, d, mut random) = (1500, 37, Random::new(4, 0));
        let (values, matrices) = both(m, d, &mut random);
        let row = |i: usize| &values[i * d..(i + 1) * d];
        let chosen: Vec<usize> = (0..m).filter(|i| i % 3 != 1).collect();
        let (k, root) = (chosen.len(), chosen.iter().map(|_| random.unit()).collect::<Vec<f64>>());
        for vectors in [1, 3, 8, 19] {
            let v: Vec<f64> = (0..vectors * k).map(|_| random.normal()).collect();
            let outs = matrices.each_ref().map(|matrix| {
                let mut out = v.clone();
                GramProduct::new(matrix, &chosen, root.clone()).unwrap().add(&v, &mut out);
                out
            });
            for (c, v) in v.chunks_exact(k).enumerate() {
                let mut w = vec![0.0; d];
                for ((&i, root), v) in chosen.iter().zip(&root).zip(v) {
                    linalg::axpy(root * v, row(i), &mut w);
                }
                for (p, &i) in chosen.iter().enumerate() {
                    let truth = v[p] + root[p] * linalg::dot(row(i), &w);
                    for out in &outs {
                        assert!((out[c * k + p] - truth).abs() < 1e-9 * (1.0 + truth.abs()), "{vectors} {c} {p}");
                    }
                }
            }
        }
    }
}
