//! Sentences for people, within what the schema takes.

const LONGEST: usize = 1000;
/// A module may say a thousand characters, with the last lines of a log.
const LONGEST_QUOTE: usize = 500;

/// The text, cut to what a `message` field takes.
pub fn cut(text: String) -> String {
    cut_to(LONGEST, text)
}

/// The same of a text that something follows, which stays whole: a command that is to be typed.
pub fn cut_before(text: String, command: &str) -> String {
    cut_to(LONGEST.saturating_sub(command.chars().count()).max(3), text) + command
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

#[cfg(test)]
mod tests {
    use super::{LONGEST, cut, cut_before};

    #[test]
    fn what_is_cut_says_so_and_a_command_behind_it_stays_whole() {
        assert_eq!(cut("short".into()), "short");
        let long = "ä".repeat(LONGEST + 1);
        assert!(cut(long.clone()).ends_with("ä..."));
        let said = cut_before(long, "; to go back: kubectl");
        assert_eq!(said.chars().count(), LONGEST);
        assert!(said.ends_with("ä...; to go back: kubectl"), "{said}");
        assert_eq!(cut_before("short".into(), "; x"), "short; x");
    }
}
