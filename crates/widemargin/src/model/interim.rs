//! Stands in for what the data layer will offer.
use crate::data::{Csr, Dense, Matrix, Real, Rows};
use crate::{Error, Result};
use std::io::Write;
use std::path::Path;
pub(super) fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let beside = path.with_extension("partial");
    let done =
        std::fs::File::create(&beside).and_then(|mut f| write(&mut f)).and_then(|()| std::fs::rename(&beside, path));
    done.map_err(|source| Error::Io { path: path.into(), source })
}
pub(super) trait WithCols {
    fn with_cols(&self, cols: usize) -> Matrix<'static>;
}
fn dense<T: Real>(x: &Dense<'_, T>, cols: usize) -> Dense<'static, T> {
    let mut v = vec![T::default(); x.rows() * cols];
    for i in 0..x.rows() {
        for (a, b) in v[i * cols..(i + 1) * cols].iter_mut().zip(x.row(i)) {
            *a = *b;
        }
    }
    Dense::new(x.rows(), cols, v).expect("fits")
}
fn sparse<T: Real>(x: &Csr<'_, T>, cols: usize) -> Csr<'static, T> {
    let (mut o, mut c, mut v) = (vec![0u64], vec![], vec![]);
    for i in 0..x.rows() {
        let (cc, vv) = x.row(i);
        for (a, b) in cc.iter().zip(vv).filter(|(a, _)| (**a as usize) < cols) {
            c.push(*a);
            v.push(*b);
        }
        o.push(v.len() as u64);
    }
    Csr::new(cols, o, c, v).expect("fits")
}
impl WithCols for Matrix<'_> {
    fn with_cols(&self, cols: usize) -> Matrix<'static> {
        match self {
            Matrix::DenseF32(x) => Matrix::DenseF32(dense(x, cols)),
            Matrix::DenseF64(x) => Matrix::DenseF64(dense(x, cols)),
            Matrix::SparseF32(x) => Matrix::SparseF32(sparse(x, cols)),
            Matrix::SparseF64(x) => Matrix::SparseF64(sparse(x, cols)),
        }
    }
}
