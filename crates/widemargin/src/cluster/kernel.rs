//! Exact kernel machines on a cluster: Newton's method here, products with the kernel matrix there.

use super::{able, check_shape};
use crate::control::Control;
use crate::data::Examples;
use crate::kernel::{Kernel, KernelProducts};
use crate::machine::Form;
use crate::multiclass::Multiclass;
use crate::train::{TrainOptions, Trained, check_options, train_with};
use crate::{Advice, Error, Result};
use std::sync::Arc;

/// Minimises `½‖w‖² + Σ s_i φ(γ_i)`, `φ` smooth, over the span of the kernel functions of the rows, where `products` multiplies with
/// their kernel matrix. It is the training of rows at hand in all else: the same solver, certificate and model; more than two classes
/// are met one against all.
pub fn train_kernel(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    products: Arc<dyn KernelProducts>,
    control: Control<'_>,
) -> Result<Trained> {
    check_options(options)?;
    check_kernel_fits(data.labels.names().len(), options)?;
    let options = TrainOptions { multiclass: Some(Multiclass::Ova), ..options.clone() };
    train_with(data, weights, &options, None, Some(products), control)
}

/// Whether a machine needs nothing of the kernel matrix but products with it.
fn multiplies(form: &Form) -> bool {
    form.loss.is_smooth() && form.variance == 0.0
}

fn check_kernel_fits(classes: usize, options: &TrainOptions) -> Result<()> {
    if !options.machine.form(&options.parameters, 1.0).is_some_and(|form| multiplies(&form)) {
        let reason = format!(
            "{} with a kernel takes more than products with the kernel matrix, which is all that a cluster makes",
            options.machine.name()
        );
        return Err(Error::conflict(reason, able(multiplies)));
    }
    if matches!(options.kernel, Kernel::Sigmoid { .. } | Kernel::Linear) || options.approx.is_some() {
        let reason = format!("a cluster multiplies with positive definite kernels, not with {}", options.kernel.name());
        return Err(Error::conflict(reason, Advice::values("kernel", ["rbf", "laplacian", "poly"])));
    }
    check_shape(classes, options)
}
