//! `widemargin verify DATA MODEL`

use crate::args::VerifyArgs;
use crate::failure::{Failure, Outcome};
use crate::files::{read_for, read_weights};
use crate::interrupt;
use crate::output::{Output, Summary};
use crate::progress::Spinner;
use serde::Serialize;
use widemargin::data::Examples;
use widemargin::model::{Model, ModelCertificate};
use widemargin::verify::{Verification, readable, verify};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    machine: &'a str,
    objective: Option<f64>,
    dual_objective: Option<f64>,
    gap: Option<f64>,
    rounding: Option<f64>,
    agrees: Option<bool>,
    reason: Option<&'a str>,
    claimed: Claims<'a>,
}

/// What the model says of itself.
#[derive(Serialize)]
struct Claims<'a> {
    #[serde(flatten)]
    certificate: &'a ModelCertificate,
    converged: bool,
}

/// Reads, recomputes, compares.
pub fn run(args: &VerifyArgs, output: &Output) -> Outcome {
    let model = Model::load(&args.model)?;
    let data = read_for(&model, &args.data, &args.input, output)?;
    let weights = args.weights.as_ref().map(|path| read_weights(path, data.rows.rows())).transpose()?;
    let spinner = Spinner::start(output, "recomputing");
    let examples = Examples::of(&data)?;
    let found = interrupt::stoppable(|control| verify(&model, examples, weights.as_deref(), control))?;
    drop(spinner);
    if output.json {
        output.object(&Report {
            version: env!("CARGO_PKG_VERSION"),
            machine: &model.machine,
            objective: found.objective,
            dual_objective: found.dual_objective,
            gap: found.gap,
            rounding: found.rounding,
            agrees: found.agrees,
            reason: found.reason.as_deref(),
            claimed: Claims { certificate: &found.claimed, converged: found.claimed.stop.converged() },
        })?;
    } else {
        output.tell(&summary(&found).to_string());
    }
    match (found.agrees, found.reason) {
        (Some(false), reason) => {
            Err(Failure::Other(format!("{} does not agree: {}", args.model.display(), reason.unwrap_or_default())))
        }
        _ => Ok(()),
    }
}

fn summary(found: &Verification) -> Summary {
    let claimed = &found.claimed;
    let mut summary = Summary::default();
    summary.line("", format!("{:>18}  {:>18}", "claimed", "recomputed"));
    let mut pair = |name, claim: Option<f64>, value: Option<f64>| {
        let text = |x: Option<f64>| x.map_or("—".into(), readable);
        summary.line(name, format!("{:>18}  {:>18}", text(claim), text(value)));
    };
    pair("objective", claimed.objective, found.objective);
    pair("dual objective", claimed.dual_objective, found.dual_objective);
    pair("gap", claimed.gap, found.gap);
    let asked = claimed.tol.map_or(String::new(), |tol| format!(" (asked for {tol})"));
    let converged = if claimed.stop.converged() { "yes" } else { "no" };
    summary.line("converged", format!("{converged:>18}{asked}"));
    if let Some(rounding) = found.rounding {
        summary.line("rounding", format!("{:>18}  {rounding:>18.1e}", ""));
    }
    summary.line("verdict", verdict(found));
    summary
}

fn verdict(found: &Verification) -> String {
    match found.agrees {
        Some(true) => "agrees".into(),
        // Why is said as the error that follows.
        Some(false) => "does not agree".into(),
        None => found.reason.clone().unwrap_or_default(),
    }
}
