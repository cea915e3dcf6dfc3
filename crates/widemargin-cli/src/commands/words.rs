//! Machines, kernels and outcomes in words, as several commands say them.

use crate::output::short;
use widemargin::data::ScalingKind;
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Parameters};
use widemargin::model::Calibration;
use widemargin::solver::StopReason;

/// `odm (c1 = 1, c2 = 1, d = 0.5)`
pub fn machine(name: &str, parameters: &Parameters) -> String {
    let list: Vec<String> = parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if list.is_empty() { name.into() } else { format!("{name} ({})", list.join(", ")) }
}

/// `rbf (gamma = 0.25)`
pub fn kernel(kernel: Kernel) -> String {
    let inside = match kernel {
        Kernel::Linear => return kernel.name().into(),
        Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => format!("gamma = {}", short(gamma)),
        Kernel::Poly { gamma, degree, coef0 } => {
            format!("gamma = {}, degree = {degree}, coef0 = {coef0}", short(gamma))
        }
        Kernel::Sigmoid { gamma, coef0 } => format!("gamma = {}, coef0 = {coef0}", short(gamma)),
    };
    format!("{} ({inside})", kernel.name())
}

/// The intercept as `--bias` takes it.
pub fn bias(bias: Bias) -> String {
    match bias {
        Bias::None => "none".into(),
        Bias::Free => "free".into(),
        Bias::Feature(b) => b.to_string(),
    }
}

/// The scaling as `--scale` takes it.
pub fn scaling(kind: Option<ScalingKind>) -> &'static str {
    match kind {
        None => "none",
        Some(ScalingKind::MinMax) => "minmax",
        Some(ScalingKind::MaxAbs) => "maxabs",
        Some(ScalingKind::Standard) => "standard",
    }
}

/// Why a solver stopped.
pub fn stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Gap => "the duality gap is within the tolerance",
        StopReason::Precision => "rounding errors hide any further progress",
        StopReason::Exact => "exact, nothing to converge",
        StopReason::Rest => "the rounds came to rest",
        StopReason::Iterations => "NOT CONVERGED: the limit on iterations came first",
    }
}

/// `12.3457 (dual 12.3456, gap 1.2e-5)`
pub fn objective(primal: Option<f64>, dual: Option<f64>, gap: Option<f64>) -> Option<String> {
    let parts = [dual.map(|d| format!("dual {}", short(d))), gap.map(|g| format!("gap {}", short(g)))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let inside = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    primal.map(|primal| format!("{}{inside}", short(primal)))
}

/// How scores become probabilities.
pub fn calibration(calibration: &Calibration) -> String {
    let (slope, loss) = (short(calibration.slope), short(calibration.log_loss));
    format!("softmax of {slope} times the scores, log loss {loss} on rows left out")
}

/// The first few of a list of labels.
pub fn labels(labels: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<&str> = labels.iter().take(SHOWN).map(String::as_str).collect();
    if labels.len() > SHOWN {
        shown.push("…");
    }
    shown.join(", ")
}
