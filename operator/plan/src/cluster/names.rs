//! Names in a sentence.

/// Names in one sentence.
const NAMES: usize = 5;

/// `a, b and 7 more`.
pub(super) fn names(mut names: Vec<String>) -> String {
    names.sort();
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let named = names.join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}
