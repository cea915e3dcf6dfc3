//! Sums that do not lose digits.

/// A compensated sum (Neumaier 1974): off by a few units in the last place of the result, and by the square of that of the
/// sum of absolute values.
#[derive(Clone, Copy, Default)]
pub struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    /// Adds a number.
    pub fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        // What the rounding of the larger of the two dropped.
        self.lost += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    /// Adds another sum.
    pub fn join(&mut self, other: Self) {
        self.add(other.sum);
        self.lost += other.lost;
    }

    /// The sum.
    pub fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// The sum of numbers, in their order.
pub fn sum(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut total = Sum::default();
    numbers.into_iter().for_each(|x| total.add(x));
    total.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cancels_leaves_the_rest() {
        assert_eq!(sum([1.0, 1e100, 1.0, -1e100]), 2.0);
        let (mut a, mut b) = (Sum::default(), Sum::default());
        [1.0, 1e100].into_iter().for_each(|x| a.add(x));
        [1.0, -1e100].into_iter().for_each(|x| b.add(x));
        a.join(b);
        assert_eq!(a.value(), 2.0);
    }
}
