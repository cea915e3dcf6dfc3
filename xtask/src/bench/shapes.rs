//! The shapes of the benchmark's data, written as `KIND:NUMBER:…`, and how their rows are drawn.

use super::random::Random;

/// A row: its label, and its values with rising columns from 0.
pub struct Row {
    pub label: usize,
    pub pairs: Vec<(u32, f64)>,
}

/// A shape of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// `dense:ROWS:COLS`: correlated normal features, two classes, a noisy plane between them.
    Dense { rows: usize, cols: usize },
    /// `text:ROWS:COLS:STORED`: words by Zipf's law, rows of length 1, two classes.
    Text { rows: usize, cols: usize, stored: usize },
    /// `curved:ROWS:COLS`: normal features, two classes, a curved border.
    Curved { rows: usize, cols: usize },
    /// `clusters:ROWS:COLS:CLASSES`: three clusters a class.
    Clusters { rows: usize, cols: usize, classes: usize },
    /// `images:ROWS:COLS:CLASSES`: a fifth of the values above zero, a template a class.
    Images { rows: usize, cols: usize, classes: usize },
    /// `topics:ROWS:COLS:STORED:CLASSES`: as text, with words a class prefers.
    Topics { rows: usize, cols: usize, stored: usize, classes: usize },
}

impl Shape {
    /// From its text.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut words = text.split(':');
        let kind = words.next().unwrap_or_default();
        let numbers: Option<Vec<usize>> = words.map(|word| word.parse().ok().filter(|&n| n > 0)).collect();
        match (kind, numbers.as_deref()) {
            ("dense", Some(&[rows, cols])) => Ok(Self::Dense { rows, cols }),
            ("text", Some(&[rows, cols, stored])) => Ok(Self::Text { rows, cols, stored }),
            ("curved", Some(&[rows, cols])) => Ok(Self::Curved { rows, cols }),
            ("clusters", Some(&[rows, cols, classes])) => Ok(Self::Clusters { rows, cols, classes }),
            ("images", Some(&[rows, cols, classes])) => Ok(Self::Images { rows, cols, classes }),
            ("topics", Some(&[rows, cols, stored, classes])) => Ok(Self::Topics { rows, cols, stored, classes }),
            _ => Err(format!("`{text}` is no shape of data: expected KIND:NUMBER:…, such as dense:1000:50")),
        }
    }

    /// Rows to train on.
    pub fn rows(&self) -> usize {
        match *self {
            Self::Dense { rows, .. }
            | Self::Text { rows, .. }
            | Self::Curved { rows, .. }
            | Self::Clusters { rows, .. }
            | Self::Images { rows, .. }
            | Self::Topics { rows, .. } => rows,
        }
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        match *self {
            Self::Dense { cols, .. }
            | Self::Text { cols, .. }
            | Self::Curved { cols, .. }
            | Self::Clusters { cols, .. }
            | Self::Images { cols, .. }
            | Self::Topics { cols, .. } => cols,
        }
    }

    /// Calls `take` for each of so many rows.
    pub fn draw(&self, count: usize, random: &mut Random, take: impl FnMut(Row)) {
        match *self {
            Self::Dense { cols, .. } => dense(cols, count, random, take),
            Self::Text { cols, stored, .. } => topics(cols, stored, 2, count, random, take),
            Self::Curved { cols, .. } => curved(cols, count, random, take),
            Self::Clusters { cols, classes, .. } => clusters(cols, classes, count, random, take),
            Self::Images { cols, classes, .. } => images(cols, classes, count, random, take),
            Self::Topics { cols, stored, classes, .. } => topics(cols, stored, classes, count, random, take),
        }
    }
}

fn paired(values: impl Iterator<Item = f64>) -> Vec<(u32, f64)> {
    values.enumerate().map(|(j, v)| (j as u32, v)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Neighbouring features correlate by one half; a tenth of the labels are noise.
fn dense(cols: usize, count: usize, random: &mut Random, mut take: impl FnMut(Row)) {
    let plane = random.normals(cols);
    for _ in 0..count {
        let mut last = 0.0;
        let x: Vec<f64> = (0..cols)
            .map(|_| {
                last = 0.5 * last + 0.866 * random.normal();
                last
            })
            .collect();
        let score = dot(&plane, &x) / (cols as f64).sqrt() + 0.4 * random.normal();
        let label = usize::from(if random.uniform() < 0.1 { random.uniform() < 0.5 } else { score > 0.0 });
        take(Row { label, pairs: paired(x.into_iter()) });
    }
}

/// The border is a sum of waves along random directions.
fn curved(cols: usize, count: usize, random: &mut Random, mut take: impl FnMut(Row)) {
    const WAVES: usize = 8;
    let directions: Vec<Vec<f64>> = (0..WAVES).map(|_| random.normals(cols)).collect();
    let stretch = 1.2 / (cols as f64).sqrt();
    for _ in 0..count {
        let x = random.normals(cols);
        let score: f64 = directions.iter().map(|w| (stretch * dot(w, &x)).sin()).sum();
        let label = usize::from(if random.uniform() < 0.1 { random.uniform() < 0.5 } else { score > 0.0 });
        take(Row { label, pairs: paired(x.into_iter()) });
    }
}

fn clusters(cols: usize, classes: usize, count: usize, random: &mut Random, mut take: impl FnMut(Row)) {
    let centres: Vec<Vec<f64>> = (0..3 * classes).map(|_| random.normals(cols)).collect();
    for _ in 0..count {
        let cluster = random.below(centres.len());
        let x: Vec<f64> = centres[cluster].iter().map(|c| 0.5 * c + 0.35 * random.normal()).collect();
        take(Row { label: cluster % classes, pairs: paired(x.into_iter()) });
    }
}

/// A value is above zero where the template of the class, blurred by a style that classes share, is.
fn images(cols: usize, classes: usize, count: usize, random: &mut Random, mut take: impl FnMut(Row)) {
    let templates: Vec<Vec<f64>> = (0..classes).map(|_| random.normals(cols)).collect();
    let styles: Vec<Vec<f64>> = (0..20).map(|_| random.normals(cols)).collect();
    for _ in 0..count {
        let label = random.below(classes);
        let style = &styles[random.below(styles.len())];
        let ink = |(t, s): (&f64, &f64)| 0.45 * t + 0.7 * s;
        let blurred: Vec<f64> = templates[label].iter().zip(style).map(ink).collect();
        let values =
            blurred.into_iter().map(|v| ((v + 0.6 * random.normal() - 0.85) * 160.0).round().clamp(0.0, 255.0) / 255.0);
        let pairs = paired(values).into_iter().filter(|(_, v)| *v > 0.0).collect();
        take(Row { label, pairs });
    }
}

/// Words by Zipf's law without its commonest; each class prefers a share of the words; rare words weigh more.
fn topics(cols: usize, stored: usize, classes: usize, count: usize, random: &mut Random, mut take: impl FnMut(Row)) {
    const CUT: f64 = 40.0;
    // Frequency must not follow the column's number: it does not in real data either, and the cache would notice.
    let spread = (1..).map(|k| (cols as f64 * 0.618) as usize + k).find(|&s| coprime(s, cols)).unwrap_or(1);
    let zipf = |random: &mut Random| {
        let word = CUT * ((1.0 + cols as f64 / CUT).ln() * random.uniform()).exp() - CUT;
        (word as usize).min(cols - 1)
    };
    let prefers = |word: usize, class: usize| {
        let mixed =
            (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (class as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 60 < 4
    };
    let mut seen = std::collections::HashSet::new();
    for _ in 0..count {
        let class = random.below(classes);
        let wanted = ((0.4 + 1.2 * random.uniform()) * stored as f64).ceil().min(0.5 * cols as f64) as usize;
        let mut pairs = Vec::with_capacity(wanted);
        seen.clear();
        while pairs.len() < wanted {
            let mut word = zipf(random);
            // A fifth of the words are looked for until the class likes them.
            if random.uniform() < 0.2 {
                (0..4).for_each(|_| word = if prefers(word, class) { word } else { zipf(random) });
            }
            if seen.insert(word) {
                let weight = (1.0 + random.uniform()) * (2.0 + word as f64 / CUT).ln();
                pairs.push(((word * spread % cols) as u32, weight));
            }
        }
        let norm = pairs.iter().map(|(_, v)| v * v).sum::<f64>().sqrt();
        pairs.iter_mut().for_each(|(_, v)| *v /= norm);
        pairs.sort_unstable_by_key(|(j, _)| *j);
        let label = if random.uniform() < 0.02 { random.below(classes) } else { class };
        take(Row { label, pairs });
    }
}

fn coprime(a: usize, b: usize) -> bool {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_and_drawn_the_same_every_time() {
        for text in
            ["dense:20:5", "text:20:900:7", "curved:20:4", "clusters:20:6:3", "images:20:40:3", "topics:20:900:7:4"]
        {
            let shape = Shape::read(text).unwrap();
            let draw = || {
                let mut rows = Vec::new();
                shape.draw(shape.rows(), &mut Random::of(text), |row| rows.push((row.label, row.pairs)));
                rows
            };
            let rows = draw();
            assert_eq!(rows, draw());
            assert_eq!(rows.len(), 20);
            for (_, pairs) in rows {
                assert!(pairs.windows(2).all(|p| p[0].0 < p[1].0), "{text}: columns rise");
                assert!(pairs.iter().all(|(j, v)| (*j as usize) < shape.cols() && v.is_finite()), "{text}");
            }
        }
        assert!(Shape::read("dense:20").is_err() && Shape::read("dense:0:5").is_err() && Shape::read("").is_err());
    }
}
