//! Defaults that follow from the rows, and what a search tries of them.

mod common;

use common::{Ask, ask, dense, noisy, weights};
use widemargin::data::Examples;
use widemargin::machine::machine;
use widemargin::model::Model;
use widemargin::select::{Search, tune};
use widemargin::verify::verify;

const D: usize = 3;

fn costs(model: &Model) -> Vec<f64> {
    ["c1", "c2", "c", "lambda"].iter().filter_map(|name| model.parameters.get(name)).collect()
}

fn fitted(name: &'static str, given: &[(&'static str, f64)], rows: usize) -> Model {
    let (values, labels) = noisy(rows, D, 5);
    Ask { parameters: given.to_vec(), tol: 1e-6, ..ask(name) }.fit(&dense(&values, &labels)).0
}

#[test]
fn costs_of_a_mean_grow_with_the_rows() {
    for (name, few, many) in [
        ("odm", &[256.0, 32.0][..], &[400.0, 50.0][..]),
        ("lssvm", &[64.0], &[100.0]),
        ("mcodm", &[64.0], &[64.0]),
        ("odm-l", &[512.0], &[512.0]),
        ("svm", &[1.0], &[1.0]),
    ] {
        assert_eq!(costs(&fitted(name, &[], 80)), few, "{name}");
        assert_eq!(costs(&fitted(name, &[], 400)), many, "{name}");
    }
    assert_eq!(costs(&fitted("odm-l", &[], 600)), [600.0]);
    assert_eq!(costs(&fitted("mcodm", &[], 1600)), [100.0]);
}

#[test]
fn what_is_given_stays_and_the_rest_follows() {
    for (given, expected) in [
        (&[("c1", 10.0)][..], [10.0, 1.25]),
        (&[("c2", 0.0)], [400.0, 0.0]),
        (&[("c1", 3.0), ("c2", 7.0)], [3.0, 7.0]),
        (&[("lambda", 36.0), ("theta", 0.4)], [36.0 / (1.0f64 - 0.4).powi(2), 12.5]),
        (&[("mu", 0.5)], [400.0, 200.0]),
        (&[("theta", 0.25)], [400.0, 50.0]),
        (&[("lambda", 8.0), ("mu", 0.25), ("theta", 0.0)], [8.0, 2.0]),
    ] {
        let model = fitted("odm", given, 400);
        let found = costs(&model);
        assert!(common::furthest(&found, &expected) < 1e-9, "{given:?}: {found:?}");
        assert_eq!(model.parameters.iter().count(), 3, "{given:?}: c1, c2, d and nothing else");
    }
}

#[test]
fn a_weight_of_three_is_three_rows() {
    let (values, labels) = noisy(120, D, 6);
    let thrice = |text: &[f64]| [text, text, text].concat();
    let repeated = dense(&thrice(&values), &[&labels[..], &labels, &labels].concat());
    let (once, _) = ask("odm").try_fit(&dense(&values, &labels), Some(&[3.0; 120])).unwrap();
    let (often, _) = ask("odm").fit(&repeated);
    assert_eq!((costs(&once), costs(&often)), (vec![360.0, 45.0], vec![360.0, 45.0]));
    assert!(common::furthest(&weights(&once), &weights(&often)) < 1e-6);
}

#[test]
fn the_model_keeps_what_it_was_fitted_with() {
    let (values, labels) = noisy(300, D, 7);
    let data = dense(&values, &labels);
    for name in ["odm", "lssvm", "odm-l", "mcodm"] {
        let (model, _) = ask(name).fit(&data);
        let checked = verify(&model, Examples::of(&data).unwrap(), None, Default::default()).unwrap();
        assert_eq!(checked.agrees, Some(true), "{name}: {checked:?}");
    }
}

#[test]
fn searches_try_more_of_more_rows() {
    let axis = |name: &str, place: usize| machine(name).unwrap().grid()[place];
    let (coarse, fine) = axis("odm", 0).tried(64.0);
    assert_eq!((coarse.as_slice(), fine.last()), (&[2.0, 16.0, 128.0, 1024.0][..], Some(&1024.0)));
    let ((c1, fine), (c2, _)) = (axis("odm", 0).tried(50_000.0), axis("odm", 1).tried(50_000.0));
    assert_eq!(c1.iter().chain(&c2).filter(|value| !fine.contains(value)).count(), 0);
    let (most, least) = (c1[c1.len() - 1] / 50_000.0, fine[0]);
    assert!((8.0..32.0).contains(&most) && least == 1.0, "{c1:?}");
    assert_eq!(c2[1] / c1[3], 0.125, "both are raised alike");
    // Sums over the rows grow with them by themselves.
    assert_eq!(axis("svm", 0).tried(1e6), axis("svm", 0).tried(10.0));
}

#[test]
fn a_search_goes_beyond_the_papers_grid_where_rows_are_many() {
    // A ring: the wider the kernel may be, the more each row has to count.
    let (values, _) = noisy(1200, 2, 8);
    let labels: Vec<&str> =
        values.chunks(2).map(|x| if (x[0] * x[0] + x[1] * x[1]) < 1.4 { "in" } else { "out" }).collect();
    let data = dense(&values, &labels);
    let options = Ask { kernel: widemargin::kernel::Kernel::Rbf { gamma: 1.0 }, tol: 1e-3, ..ask("odm") }.options();
    let found = tune(&data, None, &options, &Search::default(), Default::default()).unwrap();
    assert!(found.best.params.number("c1") > 1024.0, "{:?}", found.best.params);
}
