//! From scores of rows that their models did not see to probabilities and prediction sets.

use crate::data::Labels;
use crate::linalg::Cholesky;
use crate::machine::Outcome;
use crate::model::{Calibration, ClassConformity, Conformity, Curve, Model, UnseenBy};
use crate::names::named;

/// What probabilities are of the scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbabilityForm {
    /// A slope for all classes and an offset for each.
    #[default]
    Sigmoid,
    /// Any curve that rises: for many rows.
    Isotonic,
}

named!(ProbabilityForm, "probability", [
    Sigmoid: "sigmoid" "a slope, and an offset a class",
    Isotonic: "isotonic" "any curve that rises with the score",
]);

/// The scores of rows under models that were fitted without them.
#[derive(Clone, Debug)]
pub struct Unseen {
    /// Class scores, row after row: one number with two classes, else one a class.
    pub scores: Vec<f64>,
    /// How many of them a row has.
    pub columns: usize,
    /// The class of each row; `None` where no model that knows every class scored it.
    pub codes: Vec<Option<u32>>,
    /// What each row counts, as it was given: weights of classes are not in it.
    pub weights: Vec<f64>,
    /// The number of classes.
    pub classes: usize,
    /// How the scores came about.
    pub by: UnseenBy,
}

impl Unseen {
    /// The rows that a machine left out of its own model in turn; `None` if it could not.
    pub fn left_out(model: &Model, outcome: &Outcome, labels: &Labels, weights: &[f64]) -> Option<Self> {
        let scores = model.class_scores(outcome.loo_scores.as_ref()?);
        Some(Self {
            columns: scores.len() / labels.codes().len().max(1),
            scores,
            codes: labels.codes_in(&model.labels),
            weights: weights.to_vec(),
            classes: model.labels.len(),
            by: UnseenBy::LeaveOneOut,
        })
    }

    /// The class scores of a row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.scores[i * self.columns..(i + 1) * self.columns]
    }

    /// By how much the class of each row leads the best of the others: above zero if the row is labelled right. `None` where no model
    /// that knows every class scored it.
    pub fn margins(&self) -> Vec<Option<f64>> {
        self.codes.iter().enumerate().map(|(i, code)| code.map(|own| lead(self.row(i), own))).collect()
    }

    /// The rows that count, each with its class and weight.
    fn counted(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let rows = self.codes.iter().zip(&self.weights).enumerate();
        rows.filter_map(|(i, (code, &s))| code.filter(|_| s > 0.0).map(|code| (i, code as usize, s)))
    }
}

/// By how much the score of a class leads the best of the others.
pub(crate) fn lead(scores: &[f64], own: u32) -> f64 {
    match (scores, own) {
        ([score], 1) => *score,
        ([score], _) => -score,
        (scores, own) => {
            let others = scores.iter().enumerate().filter(|(l, _)| *l != own as usize);
            scores[own as usize] - others.fold(f64::NEG_INFINITY, |most, (_, s)| most.max(*s))
        }
    }
}

/// Beyond so many classes offsets are not fitted, only the slope: their matrix would be the dearest part of training.
const MOST_OFFSETS: usize = 64;
/// Most Newton steps; half a dozen are usual.
const STEPS: usize = 60;
/// Order statistics that are kept of a class for prediction sets.
const KEPT: usize = 1000;

/// Rows with the probabilities that each class is to have: their own scores, and what to fit to.
struct Targets<'a> {
    unseen: &'a Unseen,
    classes: usize,
    /// The typical size of a score, by which they are divided.
    typical: f64,
    /// One number a class and row that counts.
    wanted: Vec<f64>,
    /// The rows that count.
    rows: Vec<(usize, usize, f64)>,
    total: f64,
}

impl<'a> Targets<'a> {
    /// Platt's targets: of `N` rows of a class none is certain, `(N + 1) / (N + 2)` is expected, the others share the rest.
    fn new(unseen: &'a Unseen) -> Self {
        let (rows, classes): (Vec<(usize, usize, f64)>, usize) = (unseen.counted().collect(), unseen.classes);
        let mut sizes = vec![0.0; classes];
        rows.iter().for_each(|&(_, own, s)| sizes[own] += s);
        let mut wanted = Vec::with_capacity(rows.len() * classes);
        for &(_, own, _) in &rows {
            let rest = 1.0 / (sizes[own] + 2.0);
            let others = rest / (classes - 1).max(1) as f64;
            wanted.extend((0..classes).map(|c| if c == own { 1.0 - rest } else { others }));
        }
        let size = |row: &[f64]| row.iter().map(|f| f.abs()).sum::<f64>() / row.len() as f64;
        let total = sizes.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let typical = rows.iter().map(|&(i, _, s)| s / total * size(unseen.row(i))).sum::<f64>();
        let typical = if typical.is_finite() { typical.max(f64::MIN_POSITIVE) } else { f64::MAX };
        Self { unseen, classes, typical, wanted, rows, total }
    }

    /// The scores of a row's classes, divided by their typical size; with one score function the first class has zero.
    fn row(&self, i: usize, out: &mut Vec<f64>) {
        out.clear();
        if self.unseen.columns == 1 {
            out.push(0.0);
        }
        out.extend(self.unseen.row(i).iter().map(|f| f / self.typical));
    }

    /// Number of offsets that are fitted: that of the first class is zero.
    fn offsets(&self) -> usize {
        if self.classes <= MOST_OFFSETS { self.classes - 1 } else { 0 }
    }

    /// `Σ s_i (ln Σ_c exp z_c − Σ_c t_c z_c)`, `z_c = A f_c + o_c`, and if wanted its gradient and Hessian in `(A, o_1, …)`.
    fn value(&self, theta: &[f64], mut derivatives: Option<(&mut [f64], &mut [f64])>) -> f64 {
        let (n, k) = (theta.len(), self.classes);
        let (mut f, mut p, mut value) = (Vec::with_capacity(k), vec![0.0; k], 0.0);
        for (&(i, _, s), wanted) in self.rows.iter().zip(self.wanted.chunks_exact(k)) {
            self.row(i, &mut f);
            let log = softmax(theta, &f, &mut p);
            value += s * (log - (0..k).map(|c| wanted[c] * logit(theta, &f, c)).sum::<f64>());
            let Some((gradient, hessian)) = derivatives.as_mut() else { continue };
            let mean: f64 = p.iter().zip(&f).map(|(p, f)| p * f).sum();
            gradient[0] += s * (0..k).map(|c| (p[c] - wanted[c]) * f[c]).sum::<f64>();
            hessian[0] += s * p.iter().zip(&f).map(|(p, f)| p * (f - mean) * (f - mean)).sum::<f64>();
            for c in 1..n {
                gradient[c] += s * (p[c] - wanted[c]);
                hessian[c * n] += s * p[c] * (f[c] - mean);
                for l in 1..=c {
                    hessian[c * n + l] += s * (if l == c { p[c] } else { 0.0 } - p[c] * p[l]);
                }
            }
        }
        value
    }

    /// The minimum by Newton's method from `theta`, the slope above zero.
    fn minimise(&self, theta: &mut [f64], steps: usize) {
        let (n, total) = (theta.len(), self.total);
        for _ in 0..steps {
            let (mut gradient, mut hessian) = (vec![0.0; n], vec![0.0; n * n]);
            let here = self.value(theta, Some((&mut gradient, &mut hessian)));
            for c in 0..n {
                // The factor reads one triangle; it must not matter which.
                (0..c).for_each(|l| hessian[l * n + c] = hessian[c * n + l]);
                hessian[c * n + c] += 1e-9 * total;
            }
            let mut step: Vec<f64> = gradient.iter().map(|g| -g).collect();
            match Cholesky::new(hessian, n) {
                Ok(factor) => factor.solve(&mut step),
                Err(_) => step.iter_mut().for_each(|s| *s /= total),
            }
            let (mut length, before) = (1.0, theta.to_vec());
            // The function is convex: halving the step must lead down, until rounding hides it.
            loop {
                (0..n).for_each(|c| theta[c] = before[c] + length * step[c]);
                theta[0] = theta[0].max(SMALLEST_SLOPE);
                let down: f64 = (0..n).map(|c| gradient[c] * (theta[c] - before[c])).sum();
                if self.value(theta, None) <= here + 1e-4 * down {
                    break;
                }
                length *= 0.5;
                if length < 1e-10 {
                    theta.copy_from_slice(&before);
                    break;
                }
            }
            let moved = theta.iter().zip(&before).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
            if moved <= 1e-10 {
                break;
            }
        }
    }

    /// The calibration of these parameters.
    fn calibration(&self, theta: &[f64]) -> Calibration {
        let (mut f, mut p, mut loss) = (Vec::new(), vec![0.0; self.classes], 0.0);
        for &(i, own, s) in &self.rows {
            self.row(i, &mut f);
            let log = softmax(theta, &f, &mut p);
            loss += s * (log - logit(theta, &f, own));
        }
        let offsets = match (self.classes, self.offsets()) {
            (_, 0) => Vec::new(),
            (2, _) => vec![theta[1]],
            _ => std::iter::once(0.0).chain(theta[1..].iter().copied()).collect(),
        };
        let slope = (theta[0] / self.typical).clamp(f64::MIN_POSITIVE, f64::MAX);
        Calibration { slope, offsets, curves: Vec::new(), log_loss: loss / self.total, by: Some(self.unseen.by) }
    }

    /// The curve of each class, of two that of the larger label alone: what rises with the score and is nearest to what is wanted.
    fn curves(&self) -> Vec<Curve> {
        let k = self.classes;
        let of = |c: usize| {
            let rows = self.rows.iter().zip(self.wanted.chunks_exact(k));
            let score = |i: usize| match self.unseen.row(i) {
                [score] => *score,
                [below, above] => above - below,
                scores => scores[c],
            };
            pooled(rows.map(|(&(i, _, s), wanted)| (score(i), wanted[c], s)).collect())
        };
        if k == 2 { vec![of(1)] } else { (0..k).map(of).collect() }
    }
}

/// Scores of equal wanted value that were pooled.
struct Level {
    from: f64,
    to: f64,
    value: f64,
    weight: f64,
}

impl Level {
    fn join(&mut self, other: &Self) {
        self.value += (other.value - self.value) * other.weight / (self.weight + other.weight);
        self.weight += other.weight;
        self.to = other.to;
    }
}

/// The rising curve with the least weighted squares to points of score, value and weight: neighbours that fall are pooled (Ayer, Brunk,
/// Ewing, Reid & Silverman 1955). A level keeps its two ends.
fn pooled(mut points: Vec<(f64, f64, f64)>) -> Curve {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut distinct: Vec<Level> = Vec::new();
    for (score, value, weight) in points {
        let point = Level { from: score, to: score, value, weight };
        match distinct.last_mut() {
            Some(last) if last.to == score => last.join(&point),
            _ => distinct.push(point),
        }
    }
    let mut levels: Vec<Level> = Vec::new();
    for level in distinct {
        levels.push(level);
        while let [.., before, last] = levels.as_mut_slice()
            && before.value >= last.value
        {
            before.join(last);
            levels.pop();
        }
    }
    let ends = |level: &Level| [(level.from, level.value), (level.to, level.value)];
    let mut ends: Vec<(f64, f64)> = levels.iter().flat_map(ends).collect();
    ends.dedup_by(|a, b| a.0 == b.0);
    let (scores, probabilities) = ends.into_iter().unzip();
    Curve { scores, probabilities }
}

/// Scores that tell nothing still have a slope above zero.
const SMALLEST_SLOPE: f64 = 1e-6;

/// `z_c = A f_c + o_c`, `o_0 = 0`.
fn logit(theta: &[f64], f: &[f64], c: usize) -> f64 {
    theta[0] * f[c] + if c == 0 { 0.0 } else { theta.get(c).copied().unwrap_or(0.0) }
}

/// `p_c = exp z_c / Σ exp z_l`; hands back `ln Σ exp z_l`.
fn softmax(theta: &[f64], f: &[f64], p: &mut [f64]) -> f64 {
    (0..p.len()).for_each(|c| p[c] = logit(theta, f, c));
    let largest = p.iter().fold(f64::NEG_INFINITY, |most, z| most.max(*z));
    p.iter_mut().for_each(|z| *z = (*z - largest).exp());
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|z| *z /= sum);
    largest + sum.ln()
}

/// Fits `P(c | x) = exp(A f_c + o_c) / Σ_l exp(A f_l + o_l)`, of two classes `P(larger label) = 1 / (1 + exp(−(A f + o)))`, to rows
/// of these classes by their logistic loss (Platt 1999; Newton's method as Lin, Lin & Weng 2007 have it).
///
/// Rows count as they were given: probabilities speak of the classes as they come, whatever weights of classes the machine was
/// trained with.
pub fn calibrate(unseen: &Unseen) -> Calibration {
    let targets = Targets::new(unseen);
    let mut theta = vec![0.0; 1 + targets.offsets()];
    theta[0] = 1.0;
    targets.minimise(&mut theta, STEPS);
    targets.calibration(&theta)
}

/// Probabilities of this form: by slope and offset as [`calibrate`], or isotonic, which is nearest in squares to the same targets `(N + 1) /
/// (N + 2)` of a class of `N` rows: none is certain.
pub fn probabilities(unseen: &Unseen, form: ProbabilityForm) -> Calibration {
    let sigmoid = calibrate(unseen);
    if form == ProbabilityForm::Sigmoid {
        return sigmoid;
    }
    let targets = Targets::new(unseen);
    let found = Calibration { curves: targets.curves(), ..sigmoid };
    let loss = |&(i, own, s): &(usize, usize, f64)| -s * found.probabilities(unseen.row(i))[own].ln();
    let log_loss = targets.rows.iter().map(loss).sum::<f64>() / targets.total;
    Calibration { log_loss, ..found }
}

/// Labels that may be wrong, as a model of probabilities sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelNoise {
    /// The share of labels that are wrong.
    pub rate: f64,
    /// The probability that the label of a row is wrong, given what is known of it.
    pub wrong: Vec<f64>,
    /// The probability of each class, row after row ([`calibrate`]).
    pub classes: Vec<f64>,
}

/// The share `ε` of labels that were replaced by others, and for each row the probability that its own was.
///
/// With `p` the probabilities of [`calibrate`], a row speaks for another label if that is at least as probable for it as labels are,
/// on average, for the rows that have them; how many do, class by class as parts of its rows, is `ε` (the confident joint of
/// Northcutt, Jiang & Chuang 2021). If a label was drawn from `q` and then replaced with probability `ε`,
/// `p_y = (1 − ε) q_y + ε (1 − q_y) / (k − 1)`, and it was replaced with probability `ε (1 − q_y) / ((k − 1) p_y)`, which adds up to `ε` of the
/// rows. Rows that were not scored count as right.
pub fn label_noise(unseen: &Unseen) -> LabelNoise {
    let (m, k) = (unseen.codes.len(), unseen.classes);
    let calibration = calibrate(unseen);
    let classes: Vec<f64> = (0..m).flat_map(|i| calibration.probabilities(unseen.row(i))).collect();
    let rows: Vec<(usize, usize, f64)> = unseen.counted().collect();
    let (mut sizes, mut usual) = (vec![0.0; k], vec![0.0; k]);
    for &(i, own, s) in &rows {
        sizes[own] += s;
        usual[own] += s * classes[i * k + own];
    }
    (0..k).filter(|&c| sizes[c] > 0.0).for_each(|c| usual[c] /= sizes[c]);
    // How many rows of a class speak for it, and for another.
    let (mut own_votes, mut other_votes) = (vec![0.0; k], vec![0.0; k]);
    for &(i, own, s) in &rows {
        let p = &classes[i * k..(i + 1) * k];
        let confident = (0..k).filter(|&c| sizes[c] > 0.0 && p[c] >= usual[c]);
        match confident.max_by(|&a, &b| p[a].total_cmp(&p[b])) {
            Some(c) if c == own => own_votes[own] += s,
            Some(_) => other_votes[own] += s,
            None => {}
        }
    }
    let total = sizes.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let part = |c: usize| {
        let votes = own_votes[c] + other_votes[c];
        if votes > 0.0 { sizes[c] * other_votes[c] / votes } else { 0.0 }
    };
    let rate = ((0..k).map(part).sum::<f64>() / total).min(MOST_NOISE);
    let (each, mut wrong) = (rate / (k - 1).max(1) as f64, vec![0.0; m]);
    for &(i, own, _) in &rows {
        let p = classes[i * k + own];
        let q = ((p - each) / (1.0 - rate - each).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        wrong[i] = if p > 0.0 { (each * (1.0 - q) / p).min(1.0) } else { 1.0 };
    }
    LabelNoise { rate, wrong, classes }
}

/// Of labels that are wrong more often than that nobody could say which are.
const MOST_NOISE: f64 = 0.45;

/// What prediction sets need: how improbable rows found their own class, `1 − P(own class)`, class by class.
pub fn conformity(unseen: &Unseen) -> Conformity {
    let calibration = calibrate(unseen);
    let mut by_class: Vec<Vec<(f64, f64)>> = vec![Vec::new(); unseen.classes];
    for (i, own, s) in unseen.counted() {
        by_class[own].push((1.0 - calibration.probabilities(unseen.row(i))[own], s));
    }
    let by_class = by_class.into_iter().map(order_statistics).collect();
    Conformity { calibration, by_class }
}

/// At most [`KEPT`] of the numbers in ascending order, each standing for an equal share of the weight that is not above it.
fn order_statistics(mut found: Vec<(f64, f64)>) -> ClassConformity {
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rows: f64 = found.iter().map(|(_, s)| s).sum();
    let equal = found.iter().all(|(_, s)| *s == 1.0);
    if equal && found.len() <= KEPT {
        return ClassConformity { rows, scores: found.into_iter().map(|(score, _)| score).collect() };
    }
    let (mut scores, mut passed) = (Vec::with_capacity(KEPT), 0.0);
    for (score, s) in found {
        passed += s;
        while scores.len() < KEPT && passed >= rows * (scores.len() + 1) as f64 / KEPT as f64 * (1.0 - 1e-12) {
            scores.push(score);
        }
    }
    ClassConformity { rows, scores }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn unseen(scores: Vec<f64>, columns: usize, codes: &[u32]) -> Unseen {
        let (weights, classes) = (vec![1.0; codes.len()], columns.max(2));
        let codes = codes.iter().map(|code| Some(*code)).collect();
        Unseen { scores, columns, codes, weights, classes, by: UnseenBy::LeaveOneOut }
    }

    #[test]
    fn a_known_slope_and_offset_are_found_again() {
        let (mut random, m) = (Random::new(5, 0), 20_000);
        let scores: Vec<f64> = (0..m).map(|_| 2.0 * random.normal()).collect();
        let p = |f: f64| 1.0 / (1.0 + (-(1.7 * f - 2.0)).exp());
        let codes: Vec<u32> = scores.iter().map(|f| u32::from(random.unit() < p(*f))).collect();
        let found = calibrate(&unseen(scores, 1, &codes));
        assert!((found.slope - 1.7).abs() < 0.08 && (found.offsets[0] + 2.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn known_offsets_of_three_classes_are_found_again() {
        let (mut random, m) = (Random::new(6, 0), 20_000);
        let (mut scores, mut codes) = (Vec::new(), Vec::new());
        for _ in 0..m {
            let row = [0; 3].map(|_| 2.0 * random.normal());
            let odds: Vec<f64> = row.iter().zip([0.0, -1.0, 0.5]).map(|(f, o)| (0.6 * f + o).exp()).collect();
            let mut left = random.unit() * odds.iter().sum::<f64>();
            let own = odds.iter().position(|o| {
                left -= o;
                left < 0.0
            });
            codes.push(own.unwrap_or(2) as u32);
            scores.extend(row);
        }
        let mut seen = unseen(scores, 3, &codes);
        seen.codes[7] = None;
        seen.scores[21] = 1e9;
        let found = calibrate(&seen);
        assert!((found.slope - 0.6).abs() < 0.03, "{found:?}");
        assert!((found.offsets[1] + 1.0).abs() < 0.08 && (found.offsets[2] - 0.5).abs() < 0.08, "{found:?}");
    }

    /// Against scikit-learn's `IsotonicRegression`, with ties and weights.
    #[test]
    fn falling_neighbours_are_pooled() {
        let scores = [3.0, 1.0, 2.0, 2.0, 5.0, 4.0, 0.0, 6.0, 2.5];
        let (values, weights) =
            ([0.4, 0.1, 0.9, 0.2, 0.8, 0.3, 0.2, 0.7, 0.5], [1.0, 2.0, 1.0, 3.0, 1.0, 0.5, 1.0, 2.0, 1.0]);
        let curve = pooled((0..9).map(|i| (scores[i], values[i], weights[i])).collect());
        assert_eq!(curve.scores, [0.0, 1.0, 2.0, 2.5, 4.0, 5.0, 6.0]);
        let (low, middle, high) = (2.0 / 15.0, 0.42, 11.0 / 15.0);
        let expected = [low, low, 0.375, middle, middle, high, high];
        assert!(curve.probabilities.iter().zip(expected).all(|(p, e)| (p - e).abs() < 1e-12), "{curve:?}");
        let at = |f: f64| crate::data::interpolate(&curve.scores, &curve.probabilities, f);
        for (f, p) in [(-1.0, low), (1.5, 0.254_166_666_666), (2.25, 0.3975), (4.5, 0.576_666_666_666), (9.0, high)] {
            assert!((at(f) - p).abs() < 1e-9, "{f}: {} {p}", at(f));
        }
    }

    #[test]
    fn extremes_stay_finite_and_positive() {
        let codes = [0, 1, 0, 1];
        let signed = |margins: [f64; 4]| [-margins[0], margins[1], -margins[2], margins[3]].to_vec();
        for margins in [[1.0; 4], [-1.0; 4], [0.0; 4], [1e200; 4], [1e-200; 4], [5.0, 5.0, -1.0, 2.0]] {
            let found = calibrate(&unseen(signed(margins), 1, &codes));
            let finite = found.slope.is_finite() && found.log_loss.is_finite() && found.offsets[0].is_finite();
            assert!(found.slope > 0.0 && finite, "{margins:?} {found:?}");
            let curve = &probabilities(&unseen(signed(margins), 1, &codes), ProbabilityForm::Isotonic).curves[0];
            assert!(curve.probabilities.iter().all(|p| (0.25..=0.75).contains(p)), "{margins:?} {curve:?}");
        }
    }

    #[test]
    fn the_share_of_flipped_labels_is_found() {
        let (mut random, m) = (Random::new(8, 0), 4000);
        let right: Vec<u32> = (0..m).map(|_| u32::from(random.unit() < 0.4)).collect();
        let scores: Vec<f64> = right.iter().map(|&c| 2.0 * f64::from(c) - 1.0 + 0.4 * random.normal()).collect();
        for share in [0.0, 0.1, 0.2] {
            let flipped: Vec<bool> = (0..m).map(|_| random.unit() < share).collect();
            let codes: Vec<u32> = right.iter().zip(&flipped).map(|(c, flip)| c ^ u32::from(*flip)).collect();
            let found = label_noise(&unseen(scores.clone(), 1, &codes));
            assert!((found.rate - share).abs() < 0.03, "{share}: {}", found.rate);
            let sum: f64 = found.wrong.iter().sum();
            assert!((sum / m as f64 - share).abs() < 0.04, "{share}: {sum}");
            let mean = |flip: bool| {
                let rows = || (0..m).filter(|&i| flipped[i] == flip);
                rows().map(|i| found.wrong[i]).sum::<f64>() / rows().count().max(1) as f64
            };
            assert!(share == 0.0 || mean(true) > 0.5 && mean(false) < 0.1, "{share}: {} {}", mean(true), mean(false));
        }
    }
}
