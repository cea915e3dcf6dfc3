//! What came out of a comparison, in sentences.

use super::contest::chance;
use crate::output::{count, percent};
use crate::page::list;
use widemargin_studies::{Comparison, Overall, Protocol, Verdict};

/// Speeds this close are called the same: times of few runs say no more.
const SAME_SPEED: f64 = 1.25;

/// Times of fits below this, in seconds, are not compared: what else the machine does decides them.
const SHORTEST: f64 = 0.01;

/// The sentences: differences, all data sets together, and fits that fell short. They depend on the seed and the data alone.
pub fn of(comparisons: &[Comparison], totals: &[Overall], protocol: &Protocol) -> Vec<String> {
    let mut sentences = vec![differences(comparisons, protocol)];
    if totals.len() > 1 && comparisons.len() > 1 {
        sentences.push(together(comparisons, totals, protocol));
    }
    let unconverged: usize = comparisons.iter().flat_map(|c| &c.entries).map(|e| e.unconverged).sum();
    if unconverged > 0 {
        sentences.push(format!("{} did not reach the tolerance.", count(unconverged, "fit")));
    }
    sentences
}

/// Which machines differ from the reference, and where.
fn differences(comparisons: &[Comparison], protocol: &Protocol) -> String {
    let names: Vec<&str> =
        comparisons.first().map_or(Vec::new(), |c| c.entries.iter().map(|e| e.machine.as_str()).collect());
    let reference = names.get(protocol.reference).copied().unwrap_or_default();
    let others: Vec<&str> = names.iter().copied().filter(|name| *name != reference).collect();
    let sets = |m: usize, verdict: Verdict| -> Vec<&str> {
        comparisons.iter().filter(|c| c.entries[m].verdict == verdict).map(|c| c.dataset.as_str()).collect()
    };
    let tests = comparisons.iter().flat_map(|c| &c.entries).filter(|e| e.p.is_some()).count();
    let mut found = Vec::new();
    for (m, name) in names.iter().enumerate().filter(|(m, _)| *m != protocol.reference) {
        for (verdict, word) in [(Verdict::Better, "better"), (Verdict::Worse, "worse")] {
            let sets = sets(m, verdict);
            if !sets.is_empty() {
                found.push(format!("{name} is significantly {word} than {reference} on {}", list(&sets)));
            }
        }
    }
    let by = match tests {
        0 => String::new(),
        1 => format!(" ({}, 95 %)", protocol.test.name()),
        tests => format!(" ({}, 95 %, Holm over {tests} comparisons)", protocol.test.name()),
    };
    let all: Vec<&str> = comparisons.iter().map(|c| c.dataset.as_str()).collect();
    let untested = (0..names.len()).any(|m| !sets(m, Verdict::Untested).is_empty());
    if others.is_empty() {
        return format!("{reference} has nothing to be compared with.");
    }
    match (found.is_empty(), tests) {
        (false, _) => format!("{}{by}; nothing else differs significantly.", list(&found)),
        (true, 0) if untested => {
            "No difference was tested: that takes three splits, and differences that are not all the same.".into()
        }
        (true, _) => {
            let any = if others.len() > 1 { "any of " } else { "" };
            format!("No significant difference between {reference} and {any}{} on {}{by}.", list(&others), list(&all))
        }
    }
}

/// All data sets together.
fn together(comparisons: &[Comparison], totals: &[Overall], protocol: &Protocol) -> String {
    let best = totals.iter().filter(|t| t.rank > 0.0).min_by(|a, b| a.rank.total_cmp(&b.rank));
    let reference = &totals[protocol.reference];
    let Some(best) = best else { return "No data set has figures of every machine.".into() };
    let ranked = format!(
        "Over the {}, {} has the best average rank ({:.2}; mean accuracy {}, {} {})",
        count(comparisons.len(), "data set"),
        best.machine,
        best.rank,
        percent(best.accuracy),
        reference.machine,
        percent(reference.accuracy)
    );
    let tested: Vec<String> =
        totals.iter().filter_map(|t| Some(format!("{} p = {}", t.machine, chance(Some(t.p_adjusted?))))).collect();
    match tested.is_empty() {
        true => format!("{ranked}; a test over data sets takes at least six that differ."),
        false => format!("{ranked}; signed-rank tests against {} (Holm): {}.", reference.machine, list(&tested)),
    }
}

/// How quick the fits are beside the reference's: the geometric mean of the ratios over the data sets.
pub fn speed(comparisons: &[Comparison], protocol: &Protocol) -> Option<String> {
    let names = &comparisons.first()?.entries;
    let ratio = |m: usize| {
        let ratios = comparisons.iter().filter_map(|c| {
            let (own, other) = (c.entries[m].seconds, c.entries[protocol.reference].seconds);
            (own > 0.0 && other > 0.0 && own.max(other) >= SHORTEST).then(|| (other / own).ln())
        });
        let ratios: Vec<f64> = ratios.collect();
        (!ratios.is_empty()).then(|| (ratios.iter().sum::<f64>() / ratios.len() as f64).exp())
    };
    let words = |m: usize| {
        let (name, ratio) = (&names[m].machine, ratio(m)?);
        Some(match ratio {
            r if r >= SAME_SPEED => format!("{name} fits {r:.1} times faster"),
            r if r <= 1.0 / SAME_SPEED => format!("{name} fits {:.1} times slower", 1.0 / r),
            _ => format!("{name} is as fast"),
        })
    };
    let found: Vec<String> = (0..names.len()).filter(|m| *m != protocol.reference).filter_map(words).collect();
    (!found.is_empty()).then(|| {
        format!(
            "Beside {}, {} (mean time of a fit at the chosen parameters).",
            names[protocol.reference].machine,
            list(&found)
        )
    })
}
