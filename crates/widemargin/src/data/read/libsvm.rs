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
struct Problem {
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

    fn fault(&self, problem: Problem) -> Fault {
        Fault {
            line: memchr::memchr_iter(b'\n', &self.text[..self.line]).count() as u64,
            column: (problem.at - self.line) as u64 + 1,
            found: problem.found,
            expected: problem.expected,
        }
    }

    /// Says that the token at `at` should be something else.
    fn problem<T>(&self, at: usize, expected: impl Into<String>) -> Result<T, Problem> {
        let token = self.token(at);
        let found = if token.is_empty() { "nothing".into() } else { quote(token) };
        Err(Problem { at, found, expected: expected.into() })
    }

    /// Parses a line, and stands at the start of the next.
    #[inline]
    fn row(&mut self, chunk: &mut Chunk, labels: &mut ChunkLabels<'t>) -> Result<(), Problem> {
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
    fn label(&mut self, chunk: &mut Chunk, labels: &mut ChunkLabels<'t>) -> Result<(), Problem> {
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

    fn mismatch(&self, at: usize, token: &[u8], labelled: bool) -> Problem {
        let expected = if labelled {
            "index:value, as the first row has no label"
        } else {
            "a label, as the first row has one"
        };
        Problem { at, found: quote(token), expected: expected.into() }
    }

    /// Skips `qid:n`.
    fn query(&mut self) -> Result<(), Problem> {
        let token = self.token(self.at);
        let id = &token[4..];
        if id.is_empty() || !id.iter().all(u8::is_ascii_digit) {
            return self.problem(self.at, "a query number, qid:n");
        }
        self.at += token.len();
        Ok(())
    }

    /// Parses the `index:value` pairs up to the line's end or a comment.
    #[inline]
    fn pairs(&mut self, chunk: &mut Chunk) -> Result<(), Problem> {
        let mut last = 0;
        loop {
            self.skip_blanks();
            if matches!(self.byte(), b'\n' | b'#') {
                chunk.cols = chunk.cols.max(last as usize);
                return Ok(());
            }
            let index = self.index(last)?;
            let value = self.value()?;
            chunk.push(index - 1, value);
            last = index;
        }
    }

    /// Parses `index:`.
    #[inline]
    fn index(&mut self, last: u32) -> Result<u32, Problem> {
        let from = self.at;
        let mut index = 0u64;
        while self.byte().is_ascii_digit() {
            index = (index * 10 + u64::from(self.byte() - b'0')).min(1 << 40);
            self.at += 1;
        }
        if self.at == from || self.byte() != b':' {
            return self.problem(from, "index:value");
        }
        self.at += 1;
        match u32::try_from(index) {
            Ok(index) if index > last => Ok(index),
            index => self.wrong_index(from, index.ok(), last),
        }
    }

    /// Says what is wrong with an index that is not above `last`, or too large.
    #[cold]
    fn wrong_index(&self, from: usize, index: Option<u32>, last: u32) -> Result<u32, Problem> {
        match index {
            None => self.problem(from, format!("an index of at most {}", u32::MAX)),
            Some(0) => self.problem(from, "an index of at least 1 (indices start at 1)"),
            Some(index) => {
                let what = if index == last { "again" } else { "which is lower" };
                let found = format!("index {index} after index {last}, {what}");
                Err(Problem { at: from, found, expected: format!("an index above {last} (indices rise along a row)") })
            }
        }
    }

    /// Parses a value and the end of its token.
    #[inline]
    fn value(&mut self) -> Result<f64, Problem> {
        let from = self.at;
        match number(&self.text[from..], self.precision) {
            Some((value, length)) if value.is_finite() => {
                self.at += length;
                if is_end(self.byte()) { Ok(value) } else { self.problem(from, "a number") }
            }
            Some((_, length)) if self.text.get(from + length).is_none_or(|&b| is_end(b)) => {
                self.problem(from, expected_finite(self.precision))
            }
            _ => self.problem(from, "a number"),
        }
    }
}
