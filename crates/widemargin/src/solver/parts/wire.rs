//! A question as a list of numbers, which any engine can carry.

use super::{Ask, PartTask, PointAsked, Question};
use crate::loss::MarginLoss;
use crate::problem::Bias;
use crate::{Error, Result};

impl Question {
    /// As numbers.
    pub fn to_numbers(&self) -> Vec<f64> {
        let PartTask { positive, bias, loss, variance, mean_y } = self.task;
        let (kind, feature) = match bias {
            Bias::None => (0.0, 0.0),
            Bias::Feature(value) => (1.0, value),
            Bias::Free => (2.0, 0.0),
        };
        let mut out = vec![f64::from(positive), kind, feature, variance, mean_y, self.sigma.unwrap_or(0.0)];
        put(&mut out, &loss.numbers());
        out.push(self.rounds.len() as f64);
        for (place, sigma) in &self.rounds {
            put_place(&mut out, place);
            out.push(*sigma);
        }
        put_place(&mut out, &self.place);
        match &self.ask {
            Ask::Count => out.push(0.0),
            Ask::Survey { matrix, from } => {
                let (serial, step) = from.unwrap_or((0, 0.0));
                out.extend([1.0, flag(*matrix), flag(from.is_some()), serial as f64, step]);
            }
            Ask::Weighted => out.push(2.0),
            Ask::Product(v) => {
                out.push(3.0);
                put(&mut out, v);
            }
            Ask::Slopes { direction, mean, steps } => {
                out.extend([4.0, *mean]);
                put(&mut out, direction);
                put(&mut out, steps);
            }
            Ask::Balance { all, steps } => {
                out.extend([5.0, flag(*all)]);
                put(&mut out, steps);
            }
            Ask::Certify { all, step, variance_step } => out.extend([6.0, flag(*all), *step, *variance_step]),
        }
        out
    }

    /// From numbers that [`to_numbers`](Self::to_numbers) made.
    pub fn from_numbers(numbers: &[f64]) -> Result<Self> {
        let mut rest = Reader(numbers);
        rest.question()
            .filter(|_| rest.0.is_empty())
            .ok_or_else(|| Error::Usage("expected a question about rows, found other numbers".into()))
    }
}

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn put(out: &mut Vec<f64>, values: &[f64]) {
    out.push(values.len() as f64);
    out.extend(values);
}

fn put_place(out: &mut Vec<f64>, place: &PointAsked) {
    out.extend([place.serial as f64, place.mean]);
    put(out, &place.w);
}

/// Numbers that are still to be read.
struct Reader<'a>(&'a [f64]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [f64]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn number(&mut self) -> Option<f64> {
        self.take(1).map(|one| one[0])
    }

    /// A whole number.
    fn count(&mut self) -> Option<u64> {
        self.number().filter(|n| *n >= 0.0 && n.fract() == 0.0 && *n < 9e15).map(|n| n as u64)
    }

    fn flag(&mut self) -> Option<bool> {
        self.count().map(|n| n != 0)
    }

    fn list(&mut self) -> Option<Vec<f64>> {
        let count = self.count()? as usize;
        self.take(count).map(<[f64]>::to_vec)
    }

    fn place(&mut self) -> Option<PointAsked> {
        let (serial, mean) = (self.count()?, self.number()?);
        Some(PointAsked { serial, mean, w: self.list()? })
    }

    fn question(&mut self) -> Option<Question> {
        let positive = u32::try_from(self.count()?).ok()?;
        let (kind, feature) = (self.count()?, self.number()?);
        let bias = match kind {
            0 => Bias::None,
            1 => Bias::Feature(feature),
            2 => Bias::Free,
            _ => return None,
        };
        let (variance, mean_y, sigma) = (self.number()?, self.number()?, self.number()?);
        let loss = MarginLoss::from_numbers(&self.list()?)?;
        let rounds = (0..self.count()?).map(|_| Some((self.place()?, self.number()?))).collect::<Option<_>>()?;
        let place = self.place()?;
        let task = PartTask { positive, bias, loss, variance, mean_y };
        Some(Question { task, rounds, sigma: (sigma > 0.0).then_some(sigma), place, ask: self.ask()? })
    }

    fn ask(&mut self) -> Option<Ask> {
        Some(match self.count()? {
            0 => Ask::Count,
            1 => {
                let (matrix, is_known, serial, step) = (self.flag()?, self.flag()?, self.count()?, self.number()?);
                Ask::Survey { matrix, from: is_known.then_some((serial, step)) }
            }
            2 => Ask::Weighted,
            3 => Ask::Product(self.list()?),
            4 => {
                let mean = self.number()?;
                Ask::Slopes { mean, direction: self.list()?, steps: self.list()? }
            }
            5 => Ask::Balance { all: self.flag()?, steps: self.list()? },
            6 => Ask::Certify { all: self.flag()?, step: self.number()?, variance_step: self.number()? },
            _ => return None,
        })
    }
}
