//! Rows as numpy holds them, borrowed without a copy.

use crate::errors::Names;
use crate::watch::watched;
use numpy::PyUntypedArrayMethods;
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;
use widemargin::data::{self, Csr, Dense, Matrix, Real, Rows as _};

/// A C-ordered array, or `(columns, row offsets, column of each value, values)` of a CSR matrix.
#[derive(FromPyObject)]
pub enum Rows<'py> {
    #[pyo3(transparent)]
    DenseF64(PyReadonlyArray2<'py, f64>),
    #[pyo3(transparent)]
    DenseF32(PyReadonlyArray2<'py, f32>),
    SparseF64(usize, PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>),
    SparseF32(usize, PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f32>),
}

impl Rows<'_> {
    /// The library's view of the same memory.
    pub fn matrix(&self) -> PyResult<Matrix<'_>> {
        Ok(match self {
            Self::DenseF64(array) => Matrix::DenseF64(dense(array)?),
            Self::DenseF32(array) => Matrix::DenseF32(dense(array)?),
            Self::SparseF64(cols, offsets, columns, values) => Matrix::SparseF64(csr(*cols, offsets, columns, values)?),
            Self::SparseF32(cols, offsets, columns, values) => Matrix::SparseF32(csr(*cols, offsets, columns, values)?),
        })
    }
}

/// Whether all values are numbers, and none is infinite.
#[pyfunction]
pub fn all_finite(py: Python<'_>, rows: Rows<'_>, threads: usize) -> PyResult<bool> {
    match rows.matrix()? {
        Matrix::DenseF64(x) => are_finite(py, x.values(), threads),
        Matrix::DenseF32(x) => are_finite(py, x.values(), threads),
        Matrix::SparseF64(x) => are_finite(py, x.values(), threads),
        Matrix::SparseF32(x) => are_finite(py, x.values(), threads),
    }
}

/// Two features of very unlike scales, the narrowest and the widest: each from 0 and its range; `None` if there are none.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn unlike_scales(py: Python<'_>, rows: Rows<'_>, threads: usize) -> PyResult<Option<((usize, f64), (usize, f64))>> {
    let rows = &rows.matrix()?;
    let unlike = watched(py, threads, false, &Names::default(), |_| Ok(data::unlike_scales(rows)))?;
    Ok(unlike.map(|unlike| (unlike.narrow, unlike.wide)))
}

/// Up to so many values, a tenth of a millisecond, no other thread is started.
const FEW: usize = 1 << 18;

fn are_finite<T: Real>(py: Python<'_>, values: &[T], threads: usize) -> PyResult<bool> {
    const AT_ONCE: usize = 1 << 14;
    if values.len() <= FEW {
        return Ok(py.detach(|| part_is_finite(values)));
    }
    watched(py, threads, false, &Names::default(), |_| Ok(values.par_chunks(AT_ONCE).all(part_is_finite)))
}

/// `0 · x` is zero for every number, and not a number for what is none: a sum that needs no branches.
fn part_is_finite<T: Real>(values: &[T]) -> bool {
    const LANES: usize = 8;
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for (sum, &value) in sums.iter_mut().zip(chunk) {
            *sum += 0.0 * value.into();
        }
    }
    sums.iter().all(|sum| *sum == 0.0) && rest.iter().all(|&value| value.into().is_finite())
}

fn dense<'a, T: Element + Real>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<Dense<'a, T>> {
    let wrong = || PyValueError::new_err("expected a C-ordered array");
    if !array.is_c_contiguous() {
        return Err(wrong());
    }
    let &[rows, cols] = array.shape() else { return Err(wrong()) };
    Dense::new(rows, cols, array.as_slice()?).ok_or_else(wrong)
}

fn csr<'a, T: Element + Real>(
    cols: usize,
    offsets: &'a PyReadonlyArray1<'_, u64>,
    columns: &'a PyReadonlyArray1<'_, u32>,
    values: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<Csr<'a, T>> {
    Csr::new(cols, offsets.as_slice()?, columns.as_slice()?, values.as_slice()?)
        .map_err(|rule| PyValueError::new_err(format!("the sparse matrix should have {rule}")))
}

/// The library's rows as Python objects, in the form [`Rows`] reads.
pub fn to_python<'py>(py: Python<'py>, matrix: &Matrix<'_>) -> PyResult<Bound<'py, PyAny>> {
    match matrix {
        Matrix::DenseF64(x) => Ok(table(py, x.values().to_vec(), x.cols())?.into_any()),
        Matrix::DenseF32(x) => Ok(table(py, x.values().to_vec(), x.cols())?.into_any()),
        Matrix::SparseF64(x) => csr_to_python(py, x),
        Matrix::SparseF32(x) => csr_to_python(py, x),
    }
}

fn csr_to_python<'py, T: Element + Real>(py: Python<'py>, x: &Csr<'_, T>) -> PyResult<Bound<'py, PyAny>> {
    let offsets = PyArray1::from_slice(py, x.offsets());
    let columns = PyArray1::from_slice(py, x.columns());
    let values = PyArray1::from_slice(py, x.values());
    Ok((x.cols(), offsets, columns, values).into_pyobject(py)?.into_any())
}

/// Numbers, row after row, as an array of `cols` columns.
pub fn table<T: Element>(py: Python<'_>, values: Vec<T>, cols: usize) -> PyResult<Bound<'_, PyArray2<T>>> {
    let rows = values.len() / cols.max(1);
    values.into_pyarray(py).reshape([rows, cols])
}
