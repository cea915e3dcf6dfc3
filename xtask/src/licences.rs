//! The licences of all dependencies against the list in `deny.toml`, without any network.
//!
//! Security advisories are *not* checked here: that takes a fresh database, which only `cargo deny check advisories`
//! on a connected machine has.

use crate::run::{Outcome, Passed, cargo, root};

/// Checks every dependency of this platform: normal, build and test.
pub fn check() -> Outcome {
    let path = root().join("deny.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let allowed = allowed(&text);
    if allowed.is_empty() {
        return Err("deny.toml lists no allowed licences".to_string().into());
    }
    let words =
        "tree --workspace --offline --locked --all-features --edges normal,build,dev --prefix none --format {p}|{l}";
    let listed = cargo(&words.split(' ').collect::<Vec<_>>()).output()?;
    let mut packages: Vec<&str> = listed.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    packages.retain(|line| !line.is_empty());
    packages.sort_unstable();
    packages.dedup();
    let wrong = |line: &&str| line.split_once('|').is_none_or(|(_, licence)| !permits(licence, &allowed));
    let offenders: Vec<&str> = packages.iter().copied().filter(wrong).collect();
    offenders.iter().for_each(|line| println!("not allowed: {line}"));
    match offenders.len() {
        0 => {
            println!("{} packages, all under {}", packages.len(), allowed.join(", "));
            println!("advisories are not checked: that takes a fresh database (`cargo deny check advisories`)");
            Ok(Passed::Checks(1))
        }
        count => Err(format!("{count} of {} packages have a licence that is not allowed", packages.len()).into()),
    }
}

/// The strings of `allow = […]` in the table `[licenses]`.
fn allowed(text: &str) -> Vec<&str> {
    let table = text.split("[licenses]").nth(1).unwrap_or_default();
    let list = table.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
    list.split('"').skip(1).step_by(2).collect()
}

/// Whether an SPDX expression can be met with the allowed licences alone. `/` is how old packages write `OR`.
fn permits(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut place = 0;
    let permitted = any(&words, &mut place, allowed);
    permitted == Some(true) && place == words.len()
}

fn any(words: &[&str], place: &mut usize, allowed: &[&str]) -> Option<bool> {
    let mut found = all(words, place, allowed)?;
    while words.get(*place) == Some(&"OR") {
        *place += 1;
        found |= all(words, place, allowed)?;
    }
    Some(found)
}

fn all(words: &[&str], place: &mut usize, allowed: &[&str]) -> Option<bool> {
    let mut found = one(words, place, allowed)?;
    while words.get(*place) == Some(&"AND") {
        *place += 1;
        found &= one(words, place, allowed)?;
    }
    Some(found)
}

fn one(words: &[&str], place: &mut usize, allowed: &[&str]) -> Option<bool> {
    let word = *words.get(*place)?;
    *place += 1;
    match word {
        "(" => {
            let found = any(words, place, allowed)?;
            (words.get(*place) == Some(&")")).then(|| *place += 1)?;
            Some(found)
        }
        ")" | "AND" | "OR" | "WITH" => None,
        // An exception only gives more freedom.
        licence => {
            if words.get(*place) == Some(&"WITH") {
                *place += 2;
            }
            Some(allowed.contains(&licence))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
            "Unlicense/MIT",
        ] {
            assert!(permits(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT", "MIT)", "MIT OR", "MIT Apache-2.0", "mit"] {
            assert!(!permits(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn the_list() {
        let text = "[licenses]\nconfidence = 0.9\nallow = [\n  \"MIT\", # ours\n  \"Zlib\",\n]\n[bans]\nx = [\"no\"]\n";
        assert_eq!(allowed(text), ["MIT", "Zlib"]);
    }
}
