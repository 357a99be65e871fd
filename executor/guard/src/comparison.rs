//! The comparisons of a cluster's machines with the store that gives out its tokens, as a run brings them.

use std::str::FromStr;

use thiserror::Error;

/// Longest text of a time.
const TIME_LIMIT: usize = 64;

/// A text that says no comparisons.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no comparison: it is written RFC3339=TOKEN")]
pub struct NoComparison(String);

/// The store may have been set back, and machines were compared with it when it was taken up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// When it was taken up again, RFC 3339 in UTC: the order of the texts is that of the times.
    pub since: String,
    /// The highest token that it knew then.
    pub last_token: i64,
}

impl FromStr for Comparison {
    type Err = NoComparison;

    fn from_str(text: &str) -> Result<Self, NoComparison> {
        let parsed = text.split_once('=').and_then(|(since, token)| {
            let is_time = since.starts_with(|c: char| c.is_ascii_digit())
                && since.len() <= TIME_LIMIT
                && since.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-:.+".contains(&byte));
            let is_token = token.bytes().all(|byte| byte.is_ascii_digit());
            let last_token = token.parse().ok().filter(|_| is_time && is_token)?;
            Some(Self { since: since.to_owned(), last_token })
        });
        parsed.ok_or_else(|| NoComparison(text.chars().take(64).collect()))
    }
}

/// The highest token that the store can know of a run that was told of this comparison last; empty: of none. It is that
/// of the first comparison after it, or of the last one, if the run's own is not among what the store knows. None: the
/// run was told of the last one, and the store knows all since; or there was none.
pub fn limit(comparisons: &[Comparison], since: &str) -> Option<i64> {
    let last = comparisons.last().filter(|last| last.since != since)?;
    let next = comparisons.iter().find(|comparison| comparison.since.as_str() > since);
    Some(next.unwrap_or(last).last_token)
}

#[cfg(test)]
mod tests {
    use super::{Comparison, limit};

    #[test]
    fn what_is_no_comparison_is_not_read_as_one() {
        let read = "2026-01-01T00:00:00Z=100".parse();
        assert_eq!(read, Ok(Comparison { since: "2026-01-01T00:00:00Z".into(), last_token: 100 }));
        for text in ["", "=", "=1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z=", "2026-01-01T00:00:00Z=-1", "x=1"] {
            assert!(text.parse::<Comparison>().is_err(), "{text}");
        }
        let long = format!("{}=1", "2".repeat(65));
        for text in ["2026 01=1", "2026\n=1", "2026=+1", "2026=1=1", "2026=99999999999999999999", &long] {
            assert!(text.parse::<Comparison>().is_err(), "{text}");
        }
    }

    #[test]
    fn of_each_run_the_store_knows_what_it_knew_when_it_was_taken_up_next() {
        let comparisons: Vec<Comparison> =
            ["2026-03-01T00:00:00Z=100", "2026-05-01T00:00:00Z=130"].map(|text| text.parse().unwrap()).into();
        for (since, expected) in [
            ("", Some(100)),
            ("2026-02-01T00:00:00Z", Some(100)),
            ("2026-03-01T00:00:00Z", Some(130)),
            ("2026-04-01T00:00:00Z", Some(130)),
            ("2026-05-01T00:00:00Z", None),
            // Of a store that was set back since, and that nobody noticed.
            ("2026-06-01T00:00:00Z", Some(130)),
        ] {
            assert_eq!(limit(&comparisons, since), expected, "{since}");
        }
        assert_eq!(limit(&[], ""), None);
        assert_eq!(limit(&[], "2026-06-01T00:00:00Z"), None);
    }
}
