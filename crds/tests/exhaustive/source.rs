//! Rust text, as far as finding its matches needs: without comments and literals, by brackets.

use std::collections::BTreeSet;

/// A text in which comments and literals are blank.
pub struct Source(String);

/// One arm of a match.
pub struct Arm<'a> {
    /// Without its guard.
    pub pattern: &'a str,
    pub guarded: bool,
}

impl Source {
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut clean = bytes.to_vec();
        let mut at = 0;
        while at < bytes.len() {
            let end = end_of_blank(bytes, at);
            if let Some(blank) = clean.get_mut(at..end) {
                blank.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            }
            at = end.max(at + 1);
        }
        Self(String::from_utf8_lossy(&clean).into_owned())
    }

    /// The line of a place.
    pub fn line(&self, at: usize) -> usize {
        self.0[..at].matches('\n').count() + 1
    }

    /// Places of a word.
    fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        self.0.match_indices(word).map(|(at, _)| at).filter(move |at| {
            let (before, after) = (&self.0[..*at], &self.0[at + word.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    }

    /// Every `match`, with its arms.
    pub fn matches(&self) -> Vec<(usize, Vec<Arm<'_>>)> {
        let body = |at: usize| {
            let rest = &self.0[at..];
            let open = top_level(rest, |rest| rest.starts_with('{'))?;
            Some((at, arms(inside(&rest[open..])?)))
        };
        let found = self.words("match").filter_map(body);
        found.collect()
    }

    /// The pattern of every `matches!`.
    pub fn matches_macros(&self) -> Vec<(usize, &str)> {
        let pattern = |at: usize| {
            let body = inside(self.0[at..].strip_prefix("matches!")?)?;
            let comma = top_level(body, |rest| rest.starts_with(','))?;
            Some((at, without_guard(&body[comma + 1..]).0))
        };
        self.words("matches").filter_map(pattern).collect()
    }

    /// Every enum, with its variants.
    pub fn enums(&self) -> Vec<(String, BTreeSet<String>)> {
        let body = |at: usize| {
            let rest = self.0[at..].strip_prefix("enum")?.trim_start();
            let name = ident(rest);
            let variants = inside(&rest[rest.find('{')?..])?;
            let variants = split(variants, ',').into_iter().map(|variant| {
                // Attributes stand before it.
                ident(variant.rsplit(']').next().unwrap_or_default().trim_start())
            });
            let variants = variants.filter(|variant| !variant.is_empty());
            Some((name.to_owned(), variants.map(str::to_owned).collect()))
        };
        self.words("enum").filter_map(body).collect()
    }

    /// What is imported.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.words("use").filter_map(|at| self.0[at..].split(';').next())
    }

    /// The type of the `impl` before a place.
    pub fn own_type(&self, at: usize) -> &str {
        let before = &self.0[..at];
        let head = before.rfind("\nimpl").map(|at| at + 1).or(before.starts_with("impl").then_some(0));
        let head = head.and_then(|at| before[at..].split('{').next()).unwrap_or_default();
        let of = head.rsplit(" for ").next().unwrap_or_default();
        let of = of.trim_start_matches("impl").split('<').next().unwrap_or_default().trim();
        of.rsplit("::").next().unwrap_or_default()
    }
}

/// The identifier that a text begins with.
pub fn ident(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    &text[..end.unwrap_or(text.len())]
}

/// Where a comment or literal that begins here ends; here: it is none.
fn end_of_blank(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let until = |end: &[u8], from: usize| {
        let found = rest[from..].windows(end.len()).position(|window| window == end);
        at + found.map_or(rest.len(), |found| from + found + end.len())
    };
    let raw = |from: usize| {
        let hashes = rest[from..].iter().take_while(|byte| **byte == b'#').count();
        (rest.get(from + hashes) == Some(&b'"')).then(|| {
            let end = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
            until(&end, from + hashes + 1)
        })
    };
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => until(b"\n", 0).saturating_sub(1).max(at),
        [b'/', b'*', ..] => until(b"*/", 2),
        [b'b', b'r', ..] if !in_word => raw(2).unwrap_or(at),
        [b'r', ..] if !in_word => raw(1).unwrap_or(at),
        [b'"', ..] => quoted(bytes, at, b'"'),
        // A lifetime has no quote behind its first letter.
        [b'\'', b'\\', ..] | [b'\'', _, b'\'', ..] => quoted(bytes, at, b'\''),
        [b'\'', first, ..] if !first.is_ascii() => quoted(bytes, at, b'\''),
        _ => at,
    }
}

fn quoted(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at + 1;
    while let Some(byte) = bytes.get(end) {
        match *byte {
            b'\\' => end += 2,
            byte if byte == quote => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// The first place outside of brackets that is wanted.
fn top_level(text: &str, wanted: impl Fn(&str) -> bool) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        if depth == 0 && wanted(&text[at..]) {
            return Some(at);
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// What is between the bracket that a text begins with and the one that closes it.
pub fn inside(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(1..at);
        }
    }
    None
}

/// The parts of a text between separators outside of brackets.
pub fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = top_level(rest, |rest| rest.starts_with(separator)) {
        parts.push(rest[..at].trim());
        rest = &rest[at + 1..];
    }
    parts.push(rest.trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn without_guard(pattern: &str) -> (&str, bool) {
    let guard = top_level(pattern, |rest| {
        rest.strip_prefix("if").is_some_and(|rest| rest.starts_with(char::is_whitespace) || rest.starts_with('('))
    });
    // Not the end of another word.
    match guard.filter(|at| pattern[..*at].ends_with(char::is_whitespace)) {
        Some(at) => (pattern[..at].trim(), true),
        None => (pattern.trim(), false),
    }
}

fn arms(body: &str) -> Vec<Arm<'_>> {
    let mut arms = Vec::new();
    let mut rest = body;
    while let Some(arrow) = top_level(rest, |rest| rest.starts_with("=>")) {
        let (pattern, guarded) = without_guard(&rest[..arrow]);
        arms.push(Arm { pattern, guarded });
        let work = rest[arrow + 2..].trim_start();
        let block = work.starts_with('{').then(|| inside(work)).flatten();
        let after = block.map(|block| work[block.len() + 2..].trim_start());
        rest = match after.filter(|after| !after.starts_with(['.', '?'])) {
            Some(after) => after.strip_prefix(',').unwrap_or(after),
            None => match top_level(work, |rest| rest.starts_with(',')) {
                Some(comma) => &work[comma + 1..],
                None => "",
            },
        };
    }
    arms
}
