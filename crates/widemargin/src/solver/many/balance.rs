//! Making a dual point fit for free intercepts.
//!
//! An intercept that is not regularised asks of the dual that `V_l = Σ_i v_i^l = 0` for every class. Each `ζ_i^l` moves
//! its amount from class `l` to class `y_i` (and a `β_i` from `y_i` to its partner), so a dual point is a flow between
//! the classes and feasible means: what flows in, flows out. Every flow is such a circulation plus paths from the
//! classes that give too much to those that get too much, so taking the paths away makes it feasible, and only ever
//! lowers variables, which every loss allows.

use std::collections::{BTreeMap, VecDeque};

/// Amounts that flow between classes: `(to, from) → amount`.
pub type Flow = BTreeMap<(u32, u32), f64>;

/// By which factor each flow must shrink so that every class gives what it gets; flows not named stay as they are.
pub fn circulation(flow: &Flow, classes: usize) -> BTreeMap<(u32, u32), f64> {
    let mut left = flow.clone();
    let mut excess = vec![0.0; classes];
    for (&(to, from), &amount) in flow {
        excess[to as usize] += amount;
        excess[from as usize] -= amount;
    }
    let total: f64 = flow.values().sum();
    let dust = 1e-15 * total;
    // A step empties a flow, an excess or a lack, so this many suffice.
    for _ in 0..flow.len() + 2 * classes {
        let Some(path) = shortest_path(&left, &excess, dust) else { break };
        let (first, last) = (path[0].0 as usize, path[path.len() - 1].1 as usize);
        let amount = path.iter().map(|arc| left[arc]).fold(excess[first].min(-excess[last]), f64::min);
        for arc in &path {
            *left.entry(*arc).or_default() -= amount;
        }
        excess[first] -= amount;
        excess[last] += amount;
    }
    let factor = |(arc, &amount): (&(u32, u32), &f64)| {
        let kept = left[arc].max(0.0);
        (kept != amount).then(|| (*arc, kept / amount))
    };
    flow.iter().filter_map(factor).collect()
}

/// The arcs from a class with an excess, against the flow, to one with a lack.
fn shortest_path(flow: &Flow, excess: &[f64], dust: f64) -> Option<Vec<(u32, u32)>> {
    let mut came_by = vec![None; excess.len()];
    let mut seen: Vec<bool> = excess.iter().map(|e| *e > dust).collect();
    let mut queue: VecDeque<u32> = (0..excess.len() as u32).filter(|l| seen[*l as usize]).collect();
    while let Some(to) = queue.pop_front() {
        if excess[to as usize] < -dust {
            let mut path = Vec::new();
            let mut at = to;
            while let Some(next) = came_by[at as usize] {
                path.push((next, at));
                at = next;
            }
            path.reverse();
            return Some(path);
        }
        for (&(_, from), _) in flow.range((to, 0)..=(to, u32::MAX)).filter(|(_, amount)| **amount > dust) {
            if !seen[from as usize] {
                seen[from as usize] = true;
                came_by[from as usize] = Some(to);
                queue.push_back(from);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn what_flows_in_flows_out() {
        let mut random = Random::new(5, 0);
        for _ in 0..200 {
            let classes = 2 + random.below(9);
            let mut flow = Flow::new();
            for _ in 0..random.below(40) {
                let (to, from) = (random.below(classes) as u32, random.below(classes) as u32);
                if to != from {
                    flow.insert((to, from), random.unit() + 1e-3);
                }
            }
            let factors = circulation(&flow, classes);
            assert!(factors.values().all(|f| (0.0..1.0).contains(f)));
            let mut excess = vec![0.0; classes];
            for (arc, amount) in &flow {
                let kept = amount * factors.get(arc).unwrap_or(&1.0);
                excess[arc.0 as usize] += kept;
                excess[arc.1 as usize] -= kept;
            }
            assert!(excess.iter().all(|e: &f64| e.abs() < 1e-12), "{excess:?}");
        }
    }
}
