//! Sanitizes text that came from a machine: nothing in it may steer a terminal, hide itself, or grow a status.

use crds::Reason;

/// Ends a text that was cut.
const ELLIPSIS: char = '…';

/// The text on one line, without control characters and marks that change the direction of writing, at most
/// `limit` characters (Unicode code points, as a schema's `maxLength` counts).
pub fn clean(text: &str, limit: usize) -> String {
    let mut cleaned = String::new();
    let mut length = 0;
    let mut gap = false;
    for character in text.chars() {
        if character.is_whitespace() {
            gap = length > 0;
            continue;
        }
        if character.is_control() || hides(character) {
            continue;
        }
        if gap {
            cleaned.push(' ');
            length += 1;
            gap = false;
        }
        cleaned.push(character);
        length += 1;
        if length > limit {
            return cut(&cleaned, limit);
        }
    }
    cleaned
}

/// A line of output as it may reach a terminal: as it is, but for control characters (tabs stay) and marks of
/// direction.
pub fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let stays = |c: &char| *c == '\t' || !(c.is_control() || hides(*c));
    text.chars().filter(stays).collect()
}

/// Reasons that only the executor gives, or by which the operator decides: one that a machine reports is not believed.
const OWN_REASONS: [Reason; 20] = [
    Reason::AnsibleFailed,
    Reason::AnsibleKilled,
    Reason::AuthenticationFailed,
    Reason::Canceled,
    Reason::CommandRunning,
    Reason::Complete,
    Reason::DeadlineExceeded,
    Reason::Fenced,
    Reason::GuardFailed,
    Reason::HostKeyChanged,
    Reason::HostKeyUnknown,
    Reason::InputsChanged,
    Reason::InputsInvalid,
    Reason::Internal,
    Reason::InventoryMismatch,
    Reason::MachineIdentityMismatch,
    Reason::NotDone,
    Reason::NotReached,
    Reason::Paused,
    Reason::Unreachable,
];

/// A CamelCase reason that a machine may give: letters and digits, at most 64; `fallback` when nothing of that kind is
/// there.
pub fn reason(text: &str, fallback: Reason) -> String {
    let fits = !text.is_empty()
        && !Reason::among(text, &OWN_REASONS)
        && text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric());
    if fits { text.to_owned() } else { fallback.into() }
}

/// The name of a finding, as an administrator must repeat it to ignore it: letters, digits and `-_.`, at most 64;
/// `fallback` when nothing of that kind is there.
pub fn name(text: &str, fallback: &str) -> String {
    let fits = (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if fits { text.to_owned() } else { fallback.to_owned() }
}

/// At most `limit` characters, the last one an ellipsis when something was cut off.
pub fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(limit.saturating_sub(1)).collect();
    if limit > 0 {
        short.push(ELLIPSIS);
    }
    short
}

/// Zero-width characters, marks of direction, byte-order marks and the Unicode tags.
fn hides(character: char) -> bool {
    matches!(character,
        '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{Reason, clean, cut, reason};

    #[test]
    fn text_of_a_machine_is_one_line_without_control_characters() {
        let check = |text: &str, expected: &str| assert_eq!(clean(text, 20), expected, "{text:?}");
        check("plain", "plain");
        check("  two\n\n\tlines \r\n", "two lines");
        check("\u{1b}[31mred\u{1b}[0m", "[31mred[0m");
        check("a\u{202e}b\u{200b}c\u{0}d\u{85}e", "abcd e");
        check("é😀", "é😀");
        check("01234567890123456789", "01234567890123456789");
        check("012345678901234567890", "0123456789012345678…");
        check("", "");
    }

    #[test]
    fn a_reason_is_camel_case_or_the_fallback() {
        let check = |text: &str, expected: &str| assert_eq!(reason(text, Reason::TaskFailed), expected, "{text:?}");
        check("DigestMismatch", "DigestMismatch");
        check("", "TaskFailed");
        check("digest mismatch", "TaskFailed");
        check("Digest Mismatch", "TaskFailed");
        check(&"A".repeat(65), "TaskFailed");
        // A machine that says so is not paused, nor has its key changed.
        for own in super::OWN_REASONS {
            check(own.as_str(), "TaskFailed");
        }
    }

    #[test]
    fn a_line_of_output_steers_no_terminal() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(super::line(bytes), expected, "{bytes:?}");
        check(b"a\tb  c", "a\tb  c");
        check(b"\x1b]0;title\x07\x1b[31mred\r\x7f", "]0;title[31mred");
        check("é\u{85}\u{9b}31m\u{202e}x\u{200b}".as_bytes(), "é31mx");
        check(b"\xff", "\u{fffd}");
    }

    #[test]
    fn a_cut_counts_characters_not_bytes() {
        assert_eq!(cut("éééé", 4), "éééé");
        assert_eq!(cut("ééééé", 4), "ééé…");
        assert_eq!(cut("abc", 0), "");
    }
}
