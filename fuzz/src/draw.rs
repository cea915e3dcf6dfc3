//! Random choices, the same for the same seed for ever.

use widemargin::random::Random;

/// A stream of choices.
pub struct Draw(Random);

impl Draw {
    /// The choices of one case of a target: `stream` tells targets apart.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Random::new(seed, stream))
    }

    /// A number from 0 to `n − 1`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.below(n.max(1))
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Whether something of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.unit() < probability
    }

    /// A number in `[low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// `10^u`, `u` uniform in `[low, high)`.
    pub fn power(&mut self, low: f64, high: f64) -> f64 {
        10f64.powf(self.uniform(low, high))
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        self.0.normal()
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// One of these, with probabilities in proportion to their weights.
    pub fn weighted<T: Copy>(&mut self, items: &[(f64, T)]) -> T {
        let total: f64 = items.iter().map(|item| item.0).sum();
        let mut left = self.uniform(0.0, total);
        for (weight, item) in items {
            left -= weight;
            if left < 0.0 {
                return *item;
            }
        }
        items[items.len() - 1].1
    }

    /// A random byte.
    pub fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    /// Shuffles in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}
