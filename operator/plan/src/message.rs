//! Sentences for people, within what the schema takes.

const LONGEST: usize = 1000;
/// A module may say a thousand characters, with the last lines of a log.
const LONGEST_QUOTE: usize = 500;

/// The text, cut to what a `message` field takes.
pub fn cut(text: String) -> String {
    cut_to(LONGEST, text)
}

/// What a machine said, cut so that the sentence around it still says what happens next.
pub fn quote(text: String) -> String {
    cut_to(LONGEST_QUOTE, text)
}

fn cut_to(longest: usize, text: String) -> String {
    if text.chars().count() <= longest {
        return text;
    }
    let mut short: String = text.chars().take(longest - 3).collect();
    short.push_str("...");
    short
}

/// `1 machine`, `2 machines`.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
