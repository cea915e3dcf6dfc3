//! LIBSVM text: `label index:value index:value …`, one row a line.

use super::build::{Chunk, ChunkLabels, Fault};
use super::{Precision, expected_finite, number, quote};

/// Parses whole lines.
pub(super) fn parse(text: &[u8], precision: Precision) -> Chunk {
    // A pair is hardly shorter than four bytes; most are longer, and the vectors grow where they are not.
    let mut chunk = Chunk {
        values: Vec::with_capacity(text.len() / 8),
        columns: Vec::with_capacity(text.len() / 8),
        ..Chunk::default()
    };
    let mut parser = Parser { text, at: 0, line: 0, precision };
    let mut labels = ChunkLabels::default();
    while parser.at < text.len() {
        if let Err(problem) = parser.row(&mut chunk, &mut labels) {
            chunk.fault = Some(parser.fault(problem));
            break;
        }
        chunk.lines += 1;
    }
    chunk
}

/// Something wrong: where it starts, what it is, what should be there.
struct LineProblem {
    at: usize,
    found: String,
    expected: String,
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    /// Where the line at hand starts.
    line: usize,
    precision: Precision,
}

/// Whether a byte parts tokens within a line.
#[inline]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// Whether a byte ends a token.
#[inline]
fn is_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'#')
}

/// Eight bytes from `at` on, if the text has them and one more.
#[inline(always)]
fn eight_bytes(text: &[u8], at: usize) -> Option<u64> {
    let bytes = text.get(at..at + 9)?;
    Some(u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]))
}

/// The number that the leading digits of eight bytes make, and how many they are; without a branch, because lengths vary
/// from pair to pair and no processor foresees them.
#[inline(always)]
fn leading_digits(eight: u64) -> (u64, usize) {
    let digits = eight ^ 0x3030_3030_3030_3030;
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    let count = (others.trailing_zeros() / 8) as usize;
    // Zeros take the place of what is no digit, in front; then pairs, fours and all eight are joined.
    let padded = if count == 0 { 0 } else { digits << (64 - 8 * count) };
    let pairs = padded.wrapping_mul(2561) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(6_553_601) >> 16 & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(42_949_672_960_001) >> 32, count)
}

/// `[-]digits[.digits]` with at most seven and eight digits: the value, and where it ends.
///
/// The digits make a whole number below 10¹⁵ and the divisor is a power of ten below 10⁹: both are `f64`s, so that their
/// quotient is the nearest `f64`.
#[inline(always)]
fn short_decimal(text: &[u8], from: usize) -> Option<(f64, usize)> {
    const POWERS: [u32; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let negative = *text.get(from)? == b'-';
    let start = from + usize::from(negative);
    // One digit before the point is so usual that a branch, which the processor foresees, saves it the wait.
    let first = text.get(start)?.wrapping_sub(b'0');
    let (whole, before) = match first <= 9 && text.get(start + 1) == Some(&b'.') {
        true => (u64::from(first), 1),
        false => leading_digits(eight_bytes(text, start)?),
    };
    let mut end = start + before;
    let (mut digits, mut places) = (whole, 0);
    if text.get(end) == Some(&b'.') {
        let (fraction, after) = leading_digits(eight_bytes(text, end + 1)?);
        end += 1 + after;
        (digits, places) = (whole * u64::from(POWERS[after]) + fraction, after);
    }
    if before + places == 0 || before == 8 || !is_end(*text.get(end)?) {
        return None;
    }
    let value = digits as f64 / f64::from(POWERS[places]);
    Some((f64::from_bits(value.to_bits() | u64::from(negative) << 63), end))
}

/// `index:` of one or two digits, and where the value starts. Branches, because the processor foresees the columns of dense
/// rows, and of others that it is neither.
#[inline(always)]
fn short_index(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let &[first, second, third] = text.get(at..at + 3)? else { return None };
    let (first, ten) = (u32::from(first.wrapping_sub(b'0')), u32::from(second.wrapping_sub(b'0')));
    if second == b':' {
        return (first <= 9).then_some((first, at + 2));
    }
    (third == b':' && first <= 9 && ten <= 9).then_some((10 * first + ten, at + 3))
}

impl<'t> Parser<'t> {
    /// The byte at hand; the text's end reads as a line's.
    #[inline]
    fn byte(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(b'\n')
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while is_blank(self.byte()) {
            self.at += 1;
        }
    }

    /// The token that starts at `from`.
    fn token(&self, from: usize) -> &'t [u8] {
        let rest = &self.text[from..];
        &rest[..rest.iter().position(|&b| is_end(b)).unwrap_or(rest.len())]
    }

    fn fault(&self, problem: LineProblem) -> Fault {
        Fault {
            line: memchr::memchr_iter(b'\n', &self.text[..self.line]).count() as u64,
            column: (problem.at - self.line) as u64 + 1,
            found: problem.found,
            expected: problem.expected,
        }
    }

    /// Says that the token at `at` should be something else.
    fn problem<T>(&self, at: usize, expected: impl Into<String>) -> Result<T, LineProblem> {
        let token = self.token(at);
        let found = if token.is_empty() { "nothing".into() } else { quote(token) };
        Err(LineProblem { at, found, expected: expected.into() })
    }

    /// Parses a line, and stands at the start of the next.
    #[inline]
    fn row(&mut self, chunk: &mut Chunk, labels: &mut ChunkLabels<'t>) -> Result<(), LineProblem> {
        self.line = self.at;
        self.skip_blanks();
        if !matches!(self.byte(), b'\n' | b'#') {
            self.label(chunk, labels)?;
            self.pairs(chunk)?;
            chunk.end_row();
        }
        if self.byte() == b'#' {
            let rest = &self.text[self.at..];
            self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        }
        self.at += 1;
        Ok(())
    }

    /// Parses the label, if rows have one.
    fn label(&mut self, chunk: &mut Chunk, labels: &mut ChunkLabels<'t>) -> Result<(), LineProblem> {
        let from = self.at;
        let token = self.token(from);
        let labelled = !token.contains(&b':');
        match &chunk.head {
            None => {
                let fault = self.fault(self.mismatch(from, token, labelled));
                chunk.head = Some((labelled, fault));
            }
            Some((first, _)) if *first != labelled => return Err(self.mismatch(from, token, labelled)),
            Some(_) => {}
        }
        if !labelled {
            return Ok(());
        }
        if token.contains(&b',') {
            return self.problem(from, "one label (rows of several classes are not supported)");
        }
        if !labels.push(token, chunk) {
            return self.problem(from, "a label in UTF-8");
        }
        self.at += token.len();
        self.skip_blanks();
        if self.text[self.at..].starts_with(b"qid:") {
            self.query()?;
        }
        Ok(())
    }

    fn mismatch(&self, at: usize, token: &[u8], labelled: bool) -> LineProblem {
        let expected =
            if labelled { "index:value, as the first row has no label" } else { "a label, as the first row has one" };
        LineProblem { at, found: quote(token), expected: expected.into() }
    }

    /// Skips `qid:n`.
    fn query(&mut self) -> Result<(), LineProblem> {
        let token = self.token(self.at);
        let id = &token[4..];
        if id.is_empty() || !id.iter().all(u8::is_ascii_digit) {
            return self.problem(self.at, "a query number, qid:n");
        }
        self.at += token.len();
        Ok(())
    }

    /// Parses the `index:value` pairs up to the line's end or a comment.
    fn pairs(&mut self, chunk: &mut Chunk) -> Result<(), LineProblem> {
        let mut last = 0;
        loop {
            self.skip_blanks();
            if matches!(self.byte(), b'\n' | b'#') {
                chunk.cols = chunk.cols.max(last as usize);
                return Ok(());
            }
            let (index, from) = self.index(last)?;
            let (value, end) = self.value(from)?;
            chunk.push(index - 1, value);
            self.at = end;
            last = index;
        }
    }

    /// Parses `index:` and says where the value starts.
    #[inline]
    fn index(&self, last: u32) -> Result<(u32, usize), LineProblem> {
        if let Some((index, next)) = short_index(self.text, self.at)
            && index > last
        {
            return Ok((index, next));
        }
        if let Some(eight) = eight_bytes(self.text, self.at) {
            let (index, length) = leading_digits(eight);
            let next = self.at + length;
            if length < 8 && index > u64::from(last) && self.text[next] == b':' {
                return Ok((index as u32, next + 1));
            }
        }
        let (mut index, mut length) = (0u64, 0);
        // Ten digits hold every index, and more cannot overflow.
        for &byte in self.text[self.at..].iter().take(11) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            index = index * 10 + u64::from(digit);
            length += 1;
        }
        if index <= u64::from(last) || index > u64::from(u32::MAX) || self.text.get(self.at + length) != Some(&b':') {
            return self.wrong_index(last);
        }
        Ok((index as u32, self.at + length + 1))
    }

    /// Says what is wrong with the index at hand.
    #[cold]
    fn wrong_index<T>(&self, last: u32) -> Result<T, LineProblem> {
        let token = self.token(self.at);
        let digits = &token[..token.iter().take_while(|b| b.is_ascii_digit()).count()];
        if digits.is_empty() || token.get(digits.len()) != Some(&b':') {
            return self.problem(self.at, "index:value");
        }
        let index = digits.iter().fold(0u64, |n, d| (n * 10 + u64::from(d - b'0')).min(1 << 40));
        match u32::try_from(index) {
            Err(_) => self.problem(self.at, format!("an index of at most {}", u32::MAX)),
            Ok(0) => self.problem(self.at, "an index of at least 1 (indices start at 1)"),
            Ok(index) if index <= last => Err(LineProblem {
                at: self.at,
                found: format!("index {index} after index {last}"),
                expected: format!("an index above {last} (indices rise along a row, each at most once)"),
            }),
            Ok(_) => self.problem(self.at, "an index without so many zeros before it"),
        }
    }

    /// Parses the value that starts at `from`, and says where it ends.
    #[inline]
    fn value(&self, from: usize) -> Result<(f64, usize), LineProblem> {
        // One digit is the commonest value of sparse data. Its end is looked at first: whether a value begins with a sign or a
        // digit is not to be foreseen.
        if let Some(&[digit, end]) = self.text.get(from..from + 2)
            && is_end(end)
            && digit.is_ascii_digit()
        {
            return Ok((f64::from(digit - b'0'), from + 1));
        }
        if self.precision != Precision::F32
            && let Some((value, end)) = short_decimal(self.text, from)
        {
            return Ok((value, end));
        }
        match number(&self.text[from..], self.precision) {
            Some((value, length)) if value.is_finite() && self.text.get(from + length).is_none_or(|&b| is_end(b)) => {
                Ok((value, from + length))
            }
            other => self.wrong_value(from, other),
        }
    }

    #[cold]
    fn wrong_value<T>(&self, from: usize, number: Option<(f64, usize)>) -> Result<T, LineProblem> {
        match number {
            Some((_, length)) if length == self.token(from).len() => {
                self.problem(from, expected_finite(self.precision))
            }
            _ => self.problem(from, "a number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn short_decimals_are_the_nearest(text in "-?[0-9]{0,9}(\\.[0-9]{0,9})?", rest in "[ \t\r\n#e5.x][0-9 ]{12}") {
            let line = format!("{text}{rest}");
            if let Some((value, end)) = short_decimal(line.as_bytes(), 0) {
                prop_assert!(line[..end].starts_with(&text));
                prop_assert_eq!(value.to_bits(), line[..end].parse::<f64>().unwrap().to_bits());
                prop_assert!(is_end(line.as_bytes()[end]));
            }
        }

        #[test]
        fn digits_are_counted_and_joined(text in "[0-9]{0,9}", rest in "[^0-9]{9}") {
            let line = format!("{text}{rest}");
            let (value, count) = leading_digits(eight_bytes(line.as_bytes(), 0).unwrap());
            prop_assert_eq!(count, text.len().min(8));
            prop_assert_eq!(value, text[..count].parse().unwrap_or(0));
        }
    }

    #[test]
    fn usual_numbers_take_the_short_way() {
        for (text, value) in [
            ("0.5 ", 0.5),
            ("-12.25\n", -12.25),
            ("7\t", 7.0),
            (".125#", 0.125),
            ("3. ", 3.0),
            ("1234567.12345678 ", 1234567.12345678),
        ] {
            let line = format!("{text}         ");
            assert_eq!(short_decimal(line.as_bytes(), 0), Some((value, text.len() - 1)));
        }
        for text in ["1e5 ", "- ", ". ", "+1 ", "12345678 ", "0.123456789 ", "nan "] {
            assert_eq!(short_decimal(format!("{text}         ").as_bytes(), 0), None, "{text}");
        }
    }
}
