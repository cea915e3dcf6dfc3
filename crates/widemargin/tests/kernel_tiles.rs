//! Tiles of a kernel matrix go on to other rows, in the memory that is there: held against tiles that are made for these rows.

use widemargin::control::Control;
use widemargin::data::{Dense, Matrix};
use widemargin::kernel::{Kernel, KernelRows, TilePrecision, Tiles};
use widemargin::random::Random;

const PRECISIONS: [TilePrecision; 3] = [TilePrecision::Fixed, TilePrecision::Single, TilePrecision::Double];

fn rows(m: usize, d: usize) -> Matrix<'static> {
    let mut random = Random::new(11, 0);
    Matrix::DenseF64(Dense::new(m, d, (0..m * d).map(|_| random.normal()).collect::<Vec<f64>>()).unwrap())
}

/// Some rows, then others: fewer, as many and more, without some of the first or with all of them, which may leave a band half full.
#[test]
fn other_rows_have_the_products_of_tiles_made_for_them() {
    let (all, kernel, mut random) = (rows(2000, 5), Kernel::Rbf { gamma: 0.2 }, Random::new(12, 0));
    let first: Vec<usize> = (0..900).collect();
    let matrix = all.select(&first);
    let before = KernelRows::new(kernel, &matrix, 0.0);
    for precision in PRECISIONS {
        for memory in [0, 1 << 20, 1 << 30] {
            for (every, more) in [(1, 0), (1, 700), (2, 0), (2, 450), (3, 1000), (9, 10), (900, 100)] {
                let mut tiles = Tiles::new(&before, precision, memory, Control::default()).unwrap();
                let kept: Vec<usize> = (0..first.len()).step_by(every).collect();
                let chosen: Vec<usize> = kept.iter().copied().chain(first.len()..first.len() + more).collect();
                let matrix = all.select(&chosen);
                let now = KernelRows::new(kernel, &matrix, 0.0);
                tiles = tiles.of_rows(&now, &kept, Control::default()).unwrap();
                let whole = now.matrix(Control::default()).unwrap();
                let (n, v) = (chosen.len(), (0..chosen.len()).map(|_| random.normal()).collect::<Vec<f64>>());
                let found = tiles.multiply(&now, &v).unwrap();
                for (i, found) in found.iter().enumerate() {
                    let exact: f64 = whole[i * n..(i + 1) * n].iter().zip(&v).map(|(k, v)| k * v).sum();
                    let most = if precision == TilePrecision::Double { 1e-10 } else { 2e-3 };
                    assert!((exact - found).abs() < most, "{precision:?} {memory} {every} {more}: {exact} {found}");
                }
                // Again: rows that were left out come back.
                let tiles = tiles.of_rows(&before, &[], Control::default()).unwrap();
                let v = vec![1.0; first.len()];
                let anew = Tiles::new(&before, precision, 1 << 30, Control::default()).unwrap();
                let (found, exact) = (tiles.multiply(&before, &v).unwrap(), anew.multiply(&before, &v).unwrap());
                assert!(found.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 2e-2), "{precision:?} {memory} {every}");
            }
        }
    }
}

#[test]
fn the_part_of_low_rank_goes_with_its_rows() {
    let (all, kernel) = (rows(1500, 3), Kernel::Rbf { gamma: 0.2 });
    let first: Vec<usize> = (0..1000).collect();
    let matrix = all.select(&first);
    let before = KernelRows::new(kernel, &matrix, 0.0);
    let tiles = Tiles::new(&before, TilePrecision::Fixed, 1 << 30, Control::default()).unwrap();
    let h = vec![20.0; 1000];
    let part = tiles.low_rank(&before, &h, Control::default()).unwrap();
    let (rank, values) = (part.rank, part.values.clone());
    let kept: Vec<usize> = (0..1000).filter(|i| i % 3 != 1).collect();
    let chosen: Vec<usize> = kept.iter().copied().chain(1000..1500).collect();
    let matrix = all.select(&chosen);
    let now = KernelRows::new(kernel, &matrix, 0.0);
    let tiles = tiles.of_rows(&now, &kept, Control::default()).unwrap();
    let part = tiles.low_rank(&now, &h, Control::default()).unwrap();
    assert_eq!((part.rank, part.values.len()), (rank, rank * chosen.len()));
    for (at, &place) in kept.iter().enumerate() {
        assert_eq!(part.row(at), &values[place * rank..(place + 1) * rank]);
    }
    // Three features: what the landmarks explain of rows they have not seen is nearly all.
    let whole = now.matrix(Control::default()).unwrap();
    for (i, j) in
        [(0, 700), (kept.len(), 3), (kept.len() + 100, kept.len() + 200), (chosen.len() - 1, chosen.len() - 1)]
    {
        let product: f32 = part.row(i).iter().zip(part.row(j)).map(|(a, b)| a * b).sum();
        let exact = whole[i * chosen.len() + j];
        assert!((f64::from(product) - exact).abs() < 0.05, "{i} {j}: {product} {exact}");
    }
}
