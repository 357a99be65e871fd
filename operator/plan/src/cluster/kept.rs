//! How much is kept of a Node: it says what it wants of itself.

/// Of each list.
pub(crate) const MOST_ENTRIES: usize = 256;
/// Of each text, in characters.
pub(super) const LONGEST_TEXT: usize = 512;

/// As much of a text as is kept.
pub(super) fn short(text: String) -> String {
    start(text, LONGEST_TEXT)
}

/// So many characters of a text.
pub(super) fn start(text: String, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}
