//! Damage to bytes: what disks, transfers, editors and enemies do to a file.

use crate::draw::Draw;

/// Words on which parsers of numbers and lists have stumbled.
const WORDS: &[&str] = &[
    "nan",
    "inf",
    "-inf",
    "1e999",
    "-0",
    "1e-400",
    "0x10",
    "4294967296",
    "4294967295:1",
    "18446744073709551616",
    "-1",
    ":",
    "::",
    ",",
    ";",
    "=",
    "\"",
    "\"\"",
    "#",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\0",
    "\u{feff}",
    "é",
    "🙂",
    "null",
    "true",
    "{",
    "}",
    "[",
    "]",
    "qid:1",
    "1:",
    ":1",
    "1:1:1",
    "2^",
    "2^1024",
    "*0",
    "*1",
    "e",
    ".",
    "+",
    "99999999999999999999999999",
    "1e308",
    "5e-324",
];

/// Changes some bytes at some places, one to a few times.
pub fn mutate(draw: &mut Draw, bytes: &mut Vec<u8>) {
    let times = draw.pick(&[1, 1, 1, 2, 3, 8]);
    for _ in 0..times {
        once(draw, bytes);
    }
}

fn once(draw: &mut Draw, bytes: &mut Vec<u8>) {
    let at = draw.below(bytes.len() + 1);
    let length = draw.pick(&[1usize, 1, 2, 4, 8, 32]).min(bytes.len() - at);
    match draw.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << draw.below(8),
        1 if at < bytes.len() => bytes[at] = draw.byte(),
        2 => drop(bytes.drain(at..at + length)),
        3 => bytes.truncate(at),
        4 => {
            let copy = bytes[at..at + length].to_vec();
            let to = draw.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        5 => {
            let fill = draw.pick(&[0u8, 0xff, 0x80, b'0', b'9']);
            bytes[at..at + length].fill(fill);
        }
        6 => {
            let random: Vec<u8> = (0..draw.between(1, 16)).map(|_| draw.byte()).collect();
            bytes.splice(at..at, random);
        }
        7 => digit(draw, bytes),
        _ => {
            let word = draw.pick(WORDS);
            let end = if draw.chance(0.5) { at } else { at + length };
            bytes.splice(at..end, word.bytes());
        }
    }
}

/// Changes a digit, if there is one: the file stays well-formed and says something else.
fn digit(draw: &mut Draw, bytes: &mut [u8]) {
    let digits: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i].is_ascii_digit()).collect();
    if !digits.is_empty() {
        bytes[draw.pick(&digits)] = b'0' + draw.below(10) as u8;
    }
}

/// Text made of pieces, some of them from [`WORDS`].
pub fn babble(draw: &mut Draw, pieces: &[&str]) -> String {
    (0..draw.below(8)).map(|_| if draw.chance(0.6) { draw.pick(pieces) } else { draw.pick(WORDS) }).collect()
}

/// The same text, mutated; what is no text any more is replaced by the sign for that.
pub fn mutated_text(draw: &mut Draw, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    mutate(draw, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
