//! Scaling: what it promises, dense and sparse alike.

use proptest::prelude::*;
use widemargin::data::{Csr, Dense, Matrix, Rows, Scaling, ScalingKind};
use widemargin::with_rows;

const KINDS: [ScalingKind; 3] = [ScalingKind::MinMax, ScalingKind::MaxAbs, ScalingKind::Standard];

fn dense(rows: &[&[f64]]) -> Matrix<'static> {
    Matrix::DenseF64(Dense::new(rows.len(), rows[0].len(), rows.concat()).unwrap())
}

fn sparse(x: &Matrix<'_>) -> Matrix<'static> {
    let (mut offsets, mut columns, mut values) = (vec![0u64], Vec::new(), Vec::new());
    for row in table(x) {
        for (j, v) in row.into_iter().enumerate().filter(|(_, v)| *v != 0.0) {
            columns.push(j as u32);
            values.push(v);
        }
        offsets.push(values.len() as u64);
    }
    Matrix::SparseF64(Csr::new(x.cols(), offsets, columns, values).unwrap())
}

fn table(rows: &Matrix<'_>) -> Vec<Vec<f64>> {
    with_rows!(rows, x => (0..x.rows()).map(|i| {
        let mut row = vec![0.0; x.cols()];
        x.visit(i, |j, v| row[j] = v);
        row
    }).collect())
}

fn close(a: &Matrix<'_>, b: &Matrix<'_>) -> bool {
    let (a, b) = (table(a), table(b));
    a.len() == b.len() && a.iter().flatten().zip(b.iter().flatten()).all(|(x, y)| (x - y).abs() <= 1e-12)
}

#[test]
fn known_numbers() {
    let x = dense(&[&[1.0, -4.0, 7.0, 0.0], &[3.0, 2.0, 7.0, 0.0], &[5.0, 2.0, 7.0, 0.0]]);
    let scaled = |kind| table(&Scaling::fit(kind, &x, None).apply(&x));
    assert_eq!(scaled(ScalingKind::MinMax), [[0.0, 0.0, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]);
    let maxabs = scaled(ScalingKind::MaxAbs);
    assert_eq!(maxabs[0], [0.2, -1.0, 1.0, 0.0]);
    let standard = scaled(ScalingKind::Standard);
    assert!((standard[0][0] + 1.5f64.sqrt()).abs() < 1e-15 && standard[1][0] == 0.0);
    assert_eq!(standard[1][2..], [0.0, 0.0]);
}

#[test]
fn constant_features_cannot_blow_up() {
    let rows = vec![[0.1]; 1000];
    let x = dense(&rows.iter().map(|r| &r[..]).collect::<Vec<_>>());
    for kind in [ScalingKind::MinMax, ScalingKind::Standard] {
        let scaling = Scaling::fit(kind, &x, None);
        assert_eq!(table(&scaling.apply(&dense(&[&[0.1], &[0.2], &[1e300], &[-1e300]]))), vec![vec![0.0]; 4]);
    }
    for extreme in [&[1e308, -1e308][..], &[5e-324, 0.0], &[0.0, 0.0]] {
        let x = dense(&[&extreme[..1], &extreme[1..]]);
        for kind in KINDS {
            let scaled = Scaling::fit(kind, &x, None).apply(&x);
            assert!(table(&scaled).iter().flatten().all(|v| v.is_finite()), "{kind:?} {extreme:?}");
        }
    }
}

#[test]
fn columns_that_do_not_match() {
    let scaling = Scaling { kind: ScalingKind::MinMax, shift: vec![1.0, 2.0], factor: vec![2.0, 0.5], ranks: None };
    assert_eq!(table(&scaling.apply(&dense(&[&[3.0, 4.0, 9.0]]))), [[4.0, 1.0]]);
    assert_eq!(table(&scaling.apply(&dense(&[&[3.0]]))), [[4.0, -1.0]]);
    let sparse = sparse(&dense(&[&[0.0, 0.0, 9.0], &[3.0, 0.0, 0.0]]));
    let scaled = scaling.apply(&sparse);
    assert!(scaled.is_dense());
    assert_eq!(table(&scaled), [[-2.0, -1.0], [4.0, -1.0]]);
}

#[test]
fn rows_of_another_width() {
    let x = dense(&[&[1.0, 0.0, 5.0, 0.0], &[2.0, 3.0, 6.0, 0.0]]);
    for x in [x.clone(), sparse(&x)] {
        let (cut, dropped) = x.clone().with_cols(1);
        assert_eq!((table(&cut), dropped), (vec![vec![1.0], vec![2.0]], 2));
        let (wide, dropped) = x.clone().with_cols(5);
        assert_eq!((table(&wide)[1].clone(), dropped), (vec![2.0, 3.0, 6.0, 0.0, 0.0], 0));
        let (same, dropped) = x.clone().with_cols(4);
        assert_eq!((same, dropped), (x.clone(), 0));
        let (huge, _) = x.with_cols(4_000_000_000);
        assert_eq!((huge.cols(), huge.is_dense()), (4_000_000_000, false));
    }
}

fn rows() -> impl Strategy<Value = Matrix<'static>> {
    (2..30usize, 1..6usize).prop_flat_map(|(m, d)| {
        let value = prop_oneof![Just(0.0), -5.0..5.0f64];
        proptest::collection::vec(value, m * d).prop_map(move |v| Matrix::DenseF64(Dense::new(m, d, v).unwrap()))
    })
}

proptest! {
    #[test]
    fn sparse_rows_stay_sparse_and_scale_as_dense_ones_do(x in rows()) {
        for kind in KINDS {
            let s = sparse(&x);
            let (on_dense, on_sparse) = (Scaling::fit(kind, &x, None), Scaling::fit(kind, &s, None));
            prop_assert!(on_sparse.shift.iter().all(|&v| v == 0.0));
            prop_assert!(!on_sparse.apply(&s).is_dense());
            // One scaling gives the same on both, whichever it was fitted on.
            for scaling in [&on_dense, &on_sparse] {
                prop_assert!(close(&scaling.apply(&x), &scaling.apply(&s)));
                prop_assert_eq!(scaling.apply(&x), scaling.apply_owned(x.clone()));
            }
            // The factors agree where the ranges do: always for two kinds, with a zero in the column for minmax.
            for j in 0..x.cols() {
                let has_range_with_zero = {
                    let column: Vec<f64> = table(&x).iter().map(|r| r[j]).collect();
                    column.iter().any(|&v| v <= 0.0) && column.iter().any(|&v| v >= 0.0)
                };
                if kind != ScalingKind::MinMax || has_range_with_zero {
                    let (a, b) = (on_dense.factor[j], on_sparse.factor[j]);
                    prop_assert!((a - b).abs() <= 1e-9 * a.abs(), "{:?} {} {}", kind, a, b);
                }
            }
        }
    }

    #[test]
    fn weights_act_as_repetition(x in rows(), seed in any::<u64>()) {
        let weights: Vec<f64> = (0..x.rows()).map(|i| ((seed >> (2 * (i % 32))) & 3) as f64).collect();
        prop_assume!(weights.iter().any(|&w| w > 0.0));
        let repeated: Vec<usize> = weights.iter().enumerate().flat_map(|(i, &w)| vec![i; w as usize]).collect();
        for kind in KINDS {
            for x in [x.clone(), sparse(&x)] {
                let weighted = Scaling::fit(kind, &x, Some(&weights));
                let repeated = Scaling::fit(kind, &x.select(&repeated), None);
                for (a, b) in weighted.shift.iter().zip(&repeated.shift).chain(weighted.factor.iter().zip(&repeated.factor)) {
                    prop_assert!((a - b).abs() <= 1e-9 * a.abs().max(1e-6), "{:?} {} {}", kind, a, b);
                }
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let values: Vec<f64> = (0..100_000).map(|i| f64::from(i).sin()).collect();
    let x = Matrix::DenseF64(Dense::new(20_000, 5, values).unwrap());
    let fits: Vec<Vec<Scaling>> = [1, 2, 5]
        .into_iter()
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| KINDS.iter().map(|&kind| Scaling::fit(kind, &x, None)).collect())
        })
        .collect();
    assert!(fits.iter().all(|fit| *fit == fits[0]));
}
