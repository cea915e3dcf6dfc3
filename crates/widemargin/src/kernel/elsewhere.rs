//! Products with a kernel matrix whose tiles others compute: the workers of a cluster, each a share of them.

use super::tiles::share_of_tiles;
use super::{Kernel, KernelKind, KernelRows};
use crate::data::Matrix;
use crate::names::Named;
use crate::{Error, Result};

/// `G V`, asked of whoever has the rows. It says everything, so that any share of it can be asked again anywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductAsked {
    /// `k`
    pub kernel: Kernel,
    /// What is added to every kernel value.
    pub offset: f64,
    /// Whether values are computed in double precision.
    pub double: bool,
    /// What rounding may change of a value in single precision, relative to the largest.
    pub error: f64,
    /// The columns of `V`, one after the other, as long as there are rows.
    pub v: Vec<f64>,
}

/// Whoever multiplies with the kernel matrix of rows that lie elsewhere.
pub trait KernelProducts: Send + Sync {
    /// `G V = Σ` of [`ProductAsked::answer`] over all shares.
    fn multiply(&self, asked: &ProductAsked) -> Result<Vec<f64>>;
}

/// Numbers before those of `V`.
const HEAD: usize = 7;

impl ProductAsked {
    /// What share number `share` of so many adds to the product: that of as many tiles of the lower triangle of `G` as any other, each
    /// of them computed, multiplied with and let go.
    pub fn answer(&self, rows: &Matrix<'_>, share: usize, shares: usize) -> Result<Vec<f64>> {
        let m = rows.rows();
        if share >= shares || m == 0 || !self.v.len().is_multiple_of(m) {
            let reason = format!("share {share} of {shares} of a product of {m} rows with {} numbers", self.v.len());
            return Err(Error::Data { file: "a product with the kernel matrix".into(), reason });
        }
        let rows = KernelRows::new(self.kernel, rows, self.offset).rounded(self.error);
        Ok(match self.double {
            true => share_of_tiles::<f64>(&rows, &self.v, share, shares),
            false => share_of_tiles::<f32>(&rows, &self.v, share, shares),
        })
    }

    /// As a list of numbers, which any engine can carry.
    pub fn to_numbers(&self) -> Vec<f64> {
        let (gamma, degree, coef0) = match self.kernel {
            Kernel::Linear => (0.0, 0, 0.0),
            Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => (gamma, 0, 0.0),
            Kernel::Poly { gamma, degree, coef0 } => (gamma, degree, coef0),
            Kernel::Sigmoid { gamma, coef0 } => (gamma, 0, coef0),
        };
        let kind = KernelKind::WORDS.iter().position(|(kind, ..)| *kind == self.kernel.kind()).unwrap_or_default();
        let double = f64::from(u8::from(self.double));
        let head: [f64; HEAD] = [kind as f64, gamma, f64::from(degree), coef0, self.offset, double, self.error];
        head.into_iter().chain(self.v.iter().copied()).collect()
    }

    /// From numbers that [`to_numbers`](Self::to_numbers) made.
    pub fn from_numbers(numbers: &[f64]) -> Result<Self> {
        let wrong = || Error::Usage("expected a product with a kernel matrix, found other numbers".into());
        let (&[kind, gamma, degree, coef0, offset, double, error], v) =
            numbers.split_first_chunk::<HEAD>().ok_or_else(wrong)?;
        let (kind, ..) = KernelKind::WORDS.get(kind as usize).filter(|_| kind >= 0.0).ok_or_else(wrong)?;
        let kernel = kind.with(gamma, degree as u32, coef0);
        Ok(Self { kernel, offset, double: double != 0.0, error, v: v.to_vec() })
    }
}
