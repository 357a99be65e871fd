//! Sentences for people, within what the schema takes.

const LONGEST: usize = 1000;

/// The text, cut to what a `message` field takes.
pub fn cut(text: String) -> String {
    if text.chars().count() <= LONGEST {
        return text;
    }
    let mut short: String = text.chars().take(LONGEST - 3).collect();
    short.push_str("...");
    short
}

/// `1 machine`, `2 machines`.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 {
        format!("1 {thing}")
    } else {
        format!("{number} {thing}s")
    }
}
