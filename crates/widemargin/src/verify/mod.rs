//! A second opinion: objective, dual bound and gap of a model, recomputed from its file and the training rows.
//!
//! Nothing here is shared with the solvers. Of the model the loader and the scaling are used; kernels are computed by their
//! definition, losses and their conjugates stand here as formulas, sums are compensated. It is slow on purpose (every kernel
//! value that a score needs, one by one), parallel over rows, and the same for any number of threads.

mod fingerprint;
mod hulls;
mod loss;
mod many;
mod space;
mod sum;
mod two;

pub use fingerprint::fingerprint;
pub(crate) use fingerprint::survey;

use crate::control::Control;
use crate::data::{Examples, Labels, Matrix, Rows, given_weights};
use crate::kernel::Kernel;
use crate::machine::{StatedForm, StatedLoss, Statement, machine};
use crate::model::{DualKept, Model, ModelCertificate, Multiclass, Origin, Scorer};
use crate::problem::Bias;
use crate::{Result, with_rows};
use space::{CheckedRows, CheckedScores, EPS, Functions, Rounded};
use sum::sum;

/// A claimed objective, bound or gap may differ from the recomputed one by this part of the objective.
const CLAIM: f64 = 1e-6;
/// What is always allowed for rounding, as a part of the objective.
const LEAST_ROUNDING: f64 = 1e-9;
/// What is allowed for rounding at most, whatever the bound on it says: no false claim shall hide behind a bound.
const MOST_ROUNDING: f64 = 1e-4;

/// What a model claims, and what its file and the rows say.
#[derive(Clone, Debug)]
pub struct Verification {
    /// Primal objective of the model's score functions.
    pub objective: Option<f64>,
    /// Dual objective of the dual point it keeps.
    pub dual_objective: Option<f64>,
    /// `(primal − dual) / max(|primal|, |dual|)`
    pub gap: Option<f64>,
    /// How far rounding may have put these off, as a part of the objective.
    pub rounding: Option<f64>,
    /// Whether the claims hold; `None` where the model claims nothing that could be checked.
    pub agrees: Option<bool>,
    /// Why it does not agree, or why there is nothing to agree with.
    pub reason: Option<String>,
    /// What the model claims.
    pub claimed: ModelCertificate,
}

/// A number for people who compare: ten digits, without an exponent where that is readable.
pub fn readable(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    if !(1e-4..1e9).contains(&size) {
        return format!("{number:.9e}");
    }
    let whole = size.log10().floor() as i32 + 1;
    format!("{number:.*}", (10 - whole).max(0) as usize)
}

/// Recomputes what a model claims about its optimum. `weights` are the row weights it was trained with, all 1 if `None`;
/// class weights are in the model.
pub fn verify(
    model: &Model,
    data: Examples<'_>,
    weights: Option<&[f64]>,
    control: Control<'_>,
) -> Result<Verification> {
    let plain = |agrees, reason: String| Ok(Verification::plain(model, agrees, Some(reason)));
    let Some(origin) = &model.origin else {
        let reason = "the model file is of format version 1, which does not keep what a check needs: train it again";
        return plain(None, reason.into());
    };
    let given = given_weights(data.name, data.labels, weights)?;
    if let Some(reason) = other_rows(model, origin, data, &given, weights.is_some()) {
        return plain(Some(false), reason);
    }
    if let Some(reason) = no_gap(model, origin) {
        return plain(None, reason);
    }
    let Some(checked) = CheckedData::new(model, origin, data, &given) else {
        return plain(Some(false), "the model does not fit these rows".into());
    };
    if let Some(reason) = checked.wrong_support(model) {
        return plain(Some(false), reason);
    }
    let functions = checked.functions(model, origin);
    let space = CheckedRows { rows: &checked.rows, kernel: model.kernel, functions, control };
    let scores = space.scores()?;
    let check = Check { model, origin, data: &checked, space: &space, scores: &scores };
    let own = origin.multiclass == Multiclass::Own && model.scorer.columns() > 1;
    let found = match statement(model, 1.0) {
        Some(Statement::Hulls { .. } | Statement::SmallestMargin) => match check.hulls()? {
            Ok(found) => found,
            Err(reason) => return plain(Some(false), reason.into()),
        },
        _ if own => check.many()?,
        _ => check.wrapped()?,
    };
    Ok(Verification::judge(model, found))
}

/// Why these are not the rows of the model.
fn other_rows(model: &Model, origin: &Origin, data: Examples<'_>, given: &[f64], weighted: bool) -> Option<String> {
    let say = |why: String| Some(format!("these are not the rows the model was trained on: {why}"));
    if data.rows.rows() != origin.rows {
        return say(format!("it was trained on {} rows, here are {}", origin.rows, data.rows.rows()));
    }
    if fingerprint(data.rows, data.labels, given) == origin.fingerprint {
        return None;
    }
    match (origin.weighted, weighted) {
        (true, false) => say("it was trained with row weights, which are not given".into()),
        (false, true) => say("it was trained without row weights".into()),
        _ => say(format!("values, labels or weights differ ({} features)", model.features)),
    }
}

/// The class of each row among `names`: by the label's text, or by its meaning (`1` and `+1`) if that is not there.
fn codes_among(labels: &Labels, names: &[String]) -> Vec<Option<u32>> {
    let meant = labels.codes_in(names);
    let same = |name: &String| names.iter().position(|other| other == name).map(|at| at as u32);
    let exact: Vec<Option<u32>> = labels.names().iter().map(same).collect();
    labels.codes().iter().zip(meant).map(|(&code, meant)| exact[code as usize].or(meant)).collect()
}

/// Why there is no duality gap to verify.
fn no_gap(model: &Model, origin: &Origin) -> Option<String> {
    if let Some(average) = &model.average {
        return Some(format!(
            "the rows are those it was trained on; an average of {} points minimises no objective of its own, and those of its \
             points are not kept: there is nothing more to verify",
            average.points
        ));
    }
    let claims = model.certificate.objective.is_some();
    let known = statement(model, 1.0).is_some();
    if matches!(model.kernel, Kernel::Sigmoid { .. }) {
        return Some("the sigmoid kernel is not positive semidefinite: there is no duality gap to verify".into());
    }
    // Inside a wrapper the two score functions of such rounds, which are not opposite, are kept as their difference only.
    let lost = froze_scores(model) && origin.multiclass != Multiclass::Own;
    if claims && known && !lost {
        return None;
    }
    Some(match model.certificate.gap {
        Some(_) => format!("there is no second way here to compute what {} claims", model.machine),
        None => format!("{} has no duality gap to verify", model.machine),
    })
}

/// What the machine of a model says that it minimises over rows of total weight `m`.
fn statement(model: &Model, m: f64) -> Option<Statement> {
    machine(&model.machine).ok()?.statement(&model.parameters, m)
}

/// Whether scores were frozen in rounds, which leaves no problem that could be posed again.
fn froze_scores(model: &Model) -> bool {
    matches!(statement(model, 1.0), Some(Statement::Rivals { frozen: true, .. }))
}

/// The rows that have a weight, as training saw them.
struct CheckedData {
    rows: Matrix<'static>,
    codes: Vec<u32>,
    weights: Vec<f64>,
    /// Where each of them stands among all rows.
    kept: Vec<usize>,
    /// Where each of all rows stands among them.
    place: Vec<Option<usize>>,
}

impl CheckedData {
    /// `None` if a label with a weight is unknown to the model.
    fn new(model: &Model, origin: &Origin, data: Examples<'_>, given: &[f64]) -> Option<Self> {
        let names: Vec<String> = origin.class_weights.iter().map(|c| c.0.clone()).collect();
        let class_weight = |code: Option<u32>| code.map_or(0.0, |code| origin.class_weights[code as usize].1);
        let by_class = codes_among(data.labels, &names).into_iter().map(class_weight);
        let weights: Vec<f64> = given.iter().zip(by_class).map(|(w, c)| w * c).collect();
        let kept: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        let codes = codes_among(data.labels, &model.labels);
        let codes: Vec<u32> = kept.iter().map(|&i| codes[i]).collect::<Option<_>>()?;
        let rows = data.rows.select(&kept).with_cols(model.features).0;
        let rows = match &model.scaling {
            Some(scaling) => scaling.apply_owned(rows),
            None => rows,
        };
        let mut place = vec![None; weights.len()];
        kept.iter().enumerate().for_each(|(at, &i)| place[i] = Some(at));
        Some(Self { rows, codes, weights: kept.iter().map(|&i| weights[i]).collect(), kept, place })
    }

    /// Where the model's support rows stand.
    fn support(&self, model: &Model) -> Option<Vec<usize>> {
        let rows = model.support_rows.as_ref()?;
        rows.iter().map(|&i| self.place.get(usize::try_from(i).ok()?).copied().flatten()).collect()
    }

    /// Why the model's support rows are not these rows.
    fn wrong_support(&self, model: &Model) -> Option<String> {
        let Scorer::Kernel { support, .. } = &model.scorer else { return None };
        let Some(places) = self.support(model) else {
            return Some("its support rows are not among the rows that have a weight".into());
        };
        let mut distinct = places.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < places.len() {
            return Some("two of its support rows are the same row".into());
        }
        let single = support.is_f32();
        let entries = |rows: &Matrix<'_>, i: usize| -> Vec<(usize, f64)> {
            let mut entries = Vec::new();
            with_rows!(rows, x => x.visit(i, |j, v| {
                let v = if single { f64::from(v as f32) } else { v };
                if v != 0.0 {
                    entries.push((j, v));
                }
            }));
            entries
        };
        let differs = |(z, &i): (usize, &usize)| entries(support, z) != entries(&self.rows, i);
        let at = places.iter().enumerate().position(differs)?;
        Some(format!("its support row {} is not row {} of the data", at + 1, self.kept[places[at]] + 1))
    }

    fn functions(&self, model: &Model, origin: &Origin) -> Functions {
        match &model.scorer {
            Scorer::Linear { weights, .. } => Functions::Weights(weights.clone()),
            Scorer::Kernel { coefficients, .. } => Functions::Coefficients {
                support: self.support(model).unwrap_or_default(),
                coefficients: coefficients.clone(),
                landmarks: origin.landmarks.is_some(),
            },
        }
    }
}

/// Sums over the problems of a model.
#[derive(Clone, Copy, Default)]
struct FoundSums {
    /// The objective as the machine states it.
    objective: f64,
    /// What the problem with the dual bound has above that (the last round of mcODM).
    above: f64,
    /// `P − D` of that problem; `None` without a dual point.
    difference: Option<f64>,
    /// How far rounding may have put either off.
    rounding: f64,
    /// Why there is no dual point.
    missing: Option<&'static str>,
}

/// What is needed to recompute.
struct Check<'a> {
    model: &'a Model,
    origin: &'a Origin,
    data: &'a CheckedData,
    space: &'a CheckedRows<'a>,
    scores: &'a CheckedScores,
}

const TOO_LARGE: &str = "the gap cannot be checked: the dual point has more numbers than a file keeps (2^23), and does not \
                         follow from the model; train on fewer rows, or a machine with a smooth loss";

impl Check<'_> {
    /// The intercept as the machine takes it.
    fn bias(&self) -> Bias {
        machine(&self.model.machine).map_or(self.model.bias, |machine| machine.intercept(self.model.bias))
    }

    /// `‖w_l‖²`, the weight `b/B` of a constant feature `B` included.
    fn norm2(&self, l: usize) -> Rounded {
        let mut norm2 = self.space.norm2(l, self.scores);
        if let Bias::Feature(value) = self.bias() {
            norm2.value += (self.model.scorer.intercepts()[l] / value).powi(2);
        }
        norm2
    }

    /// `‖w_l − Σ_i q_li φ(x_i)‖²` for each column, a constant feature included.
    fn distances(&self, q: &[Vec<f64>]) -> Result<Vec<Rounded>> {
        let mut distances = self.space.distances(q, self.scores)?;
        if let Bias::Feature(value) = self.bias() {
            for ((distance, q), b) in distances.iter_mut().zip(q).zip(self.model.scorer.intercepts()) {
                let (weight, size) = (value * sum(q.iter().copied()), value * sum(q.iter().map(|q| q.abs())));
                let (difference, off) = (b / value - weight, EPS * (size + (b / value).abs()));
                distance.value += difference * difference;
                distance.error += (2.0 * difference.abs() + off) * off;
            }
        }
        Ok(distances)
    }

    /// The loss's part of the dual point over the rows that have a weight, one vector a column; `None` if it follows from the
    /// margins or is not kept.
    fn stored_dual(&self) -> Option<Vec<Vec<f64>>> {
        match self.model.certificate.dual? {
            DualKept::Slopes => None,
            DualKept::Variables => {
                let dual = self.model.dual.as_ref()?;
                Some(dual.iter().map(|v| self.data.kept.iter().map(|&i| v[i]).collect()).collect())
            }
            DualKept::Coefficients => {
                let Functions::Coefficients { support, coefficients, .. } = &self.space.functions else { return None };
                let column = |(column, c): (usize, &Vec<f64>)| {
                    let signs = self.signs(column);
                    let mut v = vec![0.0; self.data.codes.len()];
                    for (&i, c) in support.iter().zip(c) {
                        v[i] = c * signs[self.data.codes[i] as usize].unwrap_or(0.0);
                    }
                    v
                };
                Some(coefficients.iter().enumerate().map(column).collect())
            }
        }
    }

    /// `y` of each class in the problem of a column.
    fn signs(&self, column: usize) -> Vec<Option<f64>> {
        self.origin.multiclass.signs(&self.model.decision, self.model.labels.len(), column)
    }

    /// The two-class problems, one a column.
    fn wrapped(&self) -> Result<FoundSums> {
        let stored = self.stored_dual();
        let mut found = FoundSums { difference: Some(0.0), ..FoundSums::default() };
        let mut q = Vec::new();
        let (mut ridges, mut sways) = (Vec::new(), Vec::new());
        for l in 0..self.space.columns() {
            let problem = self.problem(l);
            let b = self.model.scorer.intercepts()[l];
            let mut primal = problem.primal(&self.scores[l], b);
            let norm2 = self.norm2(l);
            let ridge = problem.form.ridge;
            found.objective += 0.5 * ridge * norm2.value + primal.risk.value;
            found.rounding += 0.5 * ridge * norm2.error + primal.risk.error;
            let slopes = self.model.certificate.dual == Some(DualKept::Slopes) || problem.form.loss.is_smooth();
            let mut v = match &stored {
                Some(stored) => problem.rows.iter().map(|&i| stored[l][i]).collect(),
                None if slopes => problem.slopes(&primal),
                None => {
                    found.missing = Some(TOO_LARGE);
                    continue;
                }
            };
            if problem.make_feasible(&mut primal, &mut v) != 0.0 {
                found.missing = Some("its dual point cannot be balanced: there is no bound for a free intercept");
                continue;
            }
            let gap = problem.row_gap(&primal, &v);
            found.difference = found.difference.map(|d| d + gap.value + problem.variance_gap(&primal));
            sways.push(problem.sway(&primal, stored.is_none(), |i| self.space.length(i)));
            let a = problem.coefficients(&primal, &v);
            // What is left of a balance counts as often as the intercept is large.
            found.rounding += gap.error + two::BALANCED * b.abs() * sum(a.iter().map(|a| a.abs()));
            let mut all = vec![0.0; self.data.codes.len()];
            problem.rows.iter().zip(a).for_each(|(&i, a)| all[i] = a);
            q.push(all);
            ridges.push(ridge);
        }
        if found.missing.is_some() {
            return Ok(FoundSums { difference: None, ..found });
        }
        for ((distance, ridge), sway) in self.distances(&q)?.into_iter().zip(ridges).zip(sways) {
            found.difference = found.difference.map(|d| d + 0.5 * ridge * distance.value);
            found.rounding += 0.5 * ridge * distance.error + (distance.value.max(0.0).sqrt() + sway) * sway;
        }
        Ok(found)
    }

    /// The machines about convex hulls of the classes, one a column; or why there is nothing to compute with.
    fn hulls(&self) -> Result<std::result::Result<FoundSums, &'static str>> {
        let mut found = FoundSums { difference: Some(0.0), ..FoundSums::default() };
        let Some(stored) = self.stored_dual() else { return Ok(Err(TOO_LARGE)) };
        let lambda = match statement(self.model, 1.0) {
            Some(Statement::Hulls { lambda }) => Some(lambda),
            _ => None,
        };
        let mut q = vec![vec![0.0; self.data.codes.len()]; stored.len()];
        let problems: Vec<two::CheckedProblem> = (0..stored.len()).map(|l| self.problem(l)).collect();
        for (l, problem) in problems.iter().enumerate() {
            problem.rows.iter().zip(&problem.y).for_each(|(&i, y)| q[l][i] = stored[l][i] * y);
        }
        for (l, (problem, mut hull2)) in problems.iter().zip(self.space.combined(&q)?).enumerate() {
            let gamma: Vec<f64> = problem.rows.iter().map(|&i| stored[l][i]).collect();
            if !hulls::are_distributions(&gamma, &problem.y, lambda.is_some()) {
                return Ok(Err("its dual point is no weight of the rows that adds up to one"));
            }
            let (f, norm2) = (&self.scores[l], self.norm2(l));
            let interval = if let Some(lambda) = lambda {
                let f: Vec<Rounded> = problem.rows.iter().map(|&i| f[i]).collect();
                hulls::nearest_points(lambda, &gamma, &problem.y, &problem.s, &f, hull2, norm2.value)
            } else {
                if let Bias::Feature(value) = self.bias() {
                    let (weight, off) =
                        (value * sum(q[l].iter().copied()), EPS * value * sum(q[l].iter().map(|q| q.abs())));
                    hull2.value += weight * weight;
                    hull2.error += (2.0 * weight.abs() + off) * off;
                }
                let margins = problem.primal(f, self.model.scorer.intercepts()[l]).margins;
                hulls::smallest_margin(&gamma, &margins, hull2, norm2)
            };
            found.objective += interval.high;
            found.difference = found.difference.map(|d| d + interval.high - interval.low);
            found.rounding += interval.rounding;
        }
        Ok(Ok(found))
    }

    /// The two-class problem of a column.
    fn problem(&self, l: usize) -> two::CheckedProblem {
        let signs = self.signs(l);
        let sign = |i: usize| signs[self.data.codes[i] as usize];
        let (rows, y): (Vec<usize>, Vec<f64>) =
            (0..self.data.codes.len()).filter_map(|i| sign(i).map(|y| (i, y))).unzip();
        let s: Vec<f64> = rows.iter().map(|&i| self.data.weights[i]).collect();
        let total = sum(s.iter().copied());
        let form = match statement(self.model, total) {
            Some(Statement::Margins(form) | Statement::Rivals { two: form, .. }) => form,
            // Machines about hulls ask for the rows alone.
            _ => StatedForm { loss: StatedLoss::Mean { mean: 0.0 }, variance: 0.0, ridge: 1.0 },
        };
        two::CheckedProblem { rows, y, s, form, free: self.bias() == Bias::Free }
    }

    /// One problem with one score function a class.
    fn many(&self) -> Result<FoundSums> {
        let (model, checked) = (self.model, self.data);
        let (k, m) = (self.space.columns(), checked.codes.len());
        let total = sum(checked.weights.iter().copied());
        let mut found = FoundSums::default();
        let Some(Statement::Rivals { loss, .. }) = statement(model, total) else {
            return Ok(FoundSums { missing: Some("its parameters are not those of its machine"), ..found });
        };
        for l in 0..k {
            let norm2 = self.norm2(l);
            found.objective += 0.5 * norm2.value;
            found.rounding += 0.5 * norm2.error;
        }
        let row = |i: usize| many::row(self.scores, model.scorer.intercepts(), i);
        let class = |i: usize| checked.codes[i] as usize;
        found.objective += sum((0..m).map(|i| checked.weights[i] * loss.value(&row(i).0, class(i))));
        // How far rounding of its scores may put the loss of a row off.
        let off = |i: usize, pull: f64| {
            let (f, error) = row(i);
            let error = error + 4.0 * EPS * f.iter().fold(1.0, |most: f64, f| most.max(f.abs()));
            2.0 * (loss.steepness(&f, class(i), checked.weights[i], 2.0 * error) + pull) * error
        };
        let Some(stored) = self.stored_dual() else {
            found.missing = Some(if froze_scores(self.model) { PAPER } else { TOO_LARGE });
            found.rounding += sum((0..m).map(|i| off(i, 0.0)));
            return Ok(found);
        };
        let dual = |i: usize| {
            let v: Vec<f64> = stored.iter().map(|v| v[i]).collect();
            many::Dual::new(&v, class(i), checked.weights[i], loss)
        };
        let mut duals: Vec<many::Dual> = (0..m).map(dual).collect();
        if self.bias() == Bias::Free {
            many::balance(&mut duals, &checked.codes, k);
        }
        let (mut difference, mut above) = (Vec::with_capacity(m), Vec::with_capacity(m));
        for (i, dual) in duals.iter().enumerate() {
            let (f, y, s) = (row(i).0, class(i), checked.weights[i]);
            difference.push(loss.fenchel_young(&f, y, s, dual));
            above.push(s * loss.above(&f, y, dual));
            found.rounding += off(i, sum(dual.variables(y).iter().map(|v| v.abs())));
        }
        found.above = sum(above);
        let largest = model.scorer.intercepts().iter().fold(0.0, |most: f64, b| most.max(b.abs()));
        let mut q = vec![vec![0.0; m]; k];
        for (i, dual) in duals.iter().enumerate() {
            dual.variables(class(i)).into_iter().enumerate().for_each(|(l, v)| q[l][i] = v);
        }
        found.rounding += two::BALANCED * largest * sum(q.iter().flatten().map(|q| q.abs()));
        let distances = self.distances(&q)?;
        found.rounding += 0.5 * sum(distances.iter().map(|d| d.error));
        found.difference = Some(sum(difference) + 0.5 * sum(distances.iter().map(|d| d.value)));
        Ok(found)
    }
}

const PAPER: &str = "the paper's relaxation has no gap that could be checked: it freezes scores that nobody keeps";

impl Verification {
    /// Nothing that was computed.
    fn plain(model: &Model, agrees: Option<bool>, reason: Option<String>) -> Self {
        let claimed = model.certificate.clone();
        Self { objective: None, dual_objective: None, gap: None, rounding: None, agrees, reason, claimed }
    }

    /// Compares what was found with what is claimed.
    fn judge(model: &Model, found: FoundSums) -> Self {
        let primal = found.objective + found.above;
        let dual = found.difference.map(|difference| primal - difference);
        let scale = primal.abs().max(dual.map_or(0.0, f64::abs));
        let relative = |x: f64| if x == 0.0 { 0.0 } else { x / scale };
        let gap = found.difference.map(relative);
        let rounding = (LEAST_ROUNDING + relative(found.rounding)).min(f64::MAX);
        // A fit that claims no optimum may be as far off as rounding puts it.
        let rounding = if model.certificate.stop.converged() { rounding.min(MOST_ROUNDING) } else { rounding };
        let mut told = Self {
            objective: Some(found.objective),
            dual_objective: dual,
            gap,
            rounding: Some(rounding),
            ..Self::plain(model, None, None)
        };
        let paper = found.missing == Some(PAPER);
        let missing = found.missing.filter(|_| paper || told.claims_bound());
        told.reason = told.contradiction(model, scale).or(missing.map(str::to_string));
        told.agrees = if paper && told.reason.as_deref() == Some(PAPER) { None } else { Some(told.reason.is_none()) };
        // What is no number cannot be printed as one.
        let finite = |x: Option<f64>| x.filter(|x| x.is_finite());
        let (objective, dual_objective, gap) = (finite(told.objective), finite(told.dual_objective), finite(told.gap));
        Self { objective, dual_objective, gap, ..told }
    }

    /// Whether the model claims more than the trivial bound, which every problem has and which needs no dual point.
    fn claims_bound(&self) -> bool {
        let claimed = &self.claimed;
        let bound = claimed.dual_objective.is_some_and(|dual| dual > f64::MIN);
        bound || claimed.gap.is_some_and(|gap| gap < 1.0) || claimed.stop.converged()
    }

    /// Which claim does not hold.
    fn contradiction(&self, model: &Model, scale: f64) -> Option<String> {
        let claimed = &self.claimed;
        let rounding = self.rounding.unwrap_or(0.0);
        let allowed = CLAIM + rounding;
        let finite = [self.objective, self.dual_objective, self.gap].into_iter().flatten().all(f64::is_finite);
        if !finite {
            return Some("what was recomputed is not finite".into());
        }
        if model.bias == Bias::None && model.scorer.intercepts().iter().any(|b| *b != 0.0) {
            return Some("it has an intercept, but was trained without".into());
        }
        let objective = self.objective?;
        match claimed.objective {
            Some(claim) if claim == objective => {}
            Some(claim)
                if (claim - objective).abs()
                    <= CLAIM * claim.abs().max(objective.abs()) + rounding * scale.max(claim.abs()) => {}
            Some(claim) => {
                return Some(format!("the objective is {}, not {} as claimed", readable(objective), readable(claim)));
            }
            None => {}
        }
        let (gap, dual) = (self.gap?, self.dual_objective?);
        if let (Some(p), Some(d), Some(claim)) = (claimed.objective, claimed.dual_objective, claimed.gap) {
            let own = if p == d { 0.0 } else { (p - d) / p.abs().max(d.abs()) };
            if own > claim + CLAIM {
                let (claim, own) = (readable(claim), readable(own));
                return Some(format!("it claims a gap of {claim}, but its objectives leave {own}"));
            }
        }
        if let Some(claim) = claimed.dual_objective.filter(|claim| *claim > dual + allowed * scale.max(claim.abs())) {
            return Some(format!("the dual objective is {}, not {} as claimed", readable(dual), readable(claim)));
        }
        // A bound far below zero makes a smaller difference a larger part: differences are what is compared.
        let far = |claim: &f64| *claim < 1.0 && gap > claim + allowed;
        if let Some(claim) = claimed.gap.filter(far) {
            return Some(format!("the gap is {}, not {} as claimed", readable(gap), readable(claim)));
        }
        match claimed.tol {
            Some(tol) if claimed.stop.converged() && gap > tol + rounding => {
                Some(format!("it claims to have converged to {tol}, but the gap is {}", readable(gap)))
            }
            _ => None,
        }
    }
}
