//! What is printed at the end: a line for each scenario, and the last line.

use std::fmt::Write;
use std::time::Duration;

use super::scenario::LifecycleScenario;

/// How a scenario went.
#[derive(Clone, Debug)]
pub struct Row {
    /// The scenario.
    pub scenario: LifecycleScenario,
    /// What was seen; or what did not hold.
    pub seen: Result<String, String>,
    /// From its begin to its end, without the cluster that it began with.
    pub took: Duration,
}

/// The whole text.
pub fn render(rows: &[Row]) -> String {
    let mut text =
        String::from("Lifecycle: seconds from the wish, or from the hit, until all that is promised held\n\n");
    for row in rows {
        let (outcome, seen) = match &row.seen {
            Ok(seen) => ("passed", seen.as_str()),
            Err(why) => ("FAILED", why.lines().next().unwrap_or_default()),
        };
        let seconds = row.took.as_secs_f64();
        let _ = writeln!(text, "  {:<22} {outcome} {seconds:>7.1} s  {seen}", row.scenario.name());
    }
    for row in rows {
        if let Err(why) = &row.seen {
            let _ = writeln!(text, "\nFAILED {}: {}\n{why}", row.scenario.name(), row.scenario.promise());
        }
    }
    let _ = write!(text, "\n{}", last_line(rows));
    text
}

/// `N passed, N failed`.
pub fn last_line(rows: &[Row]) -> String {
    let passed = rows.iter().filter(|row| row.seen.is_ok()).count();
    format!("{passed} passed, {} failed", rows.len() - passed)
}

/// Whether every scenario has passed, and there is one.
pub fn all_passed(rows: &[Row]) -> bool {
    !rows.is_empty() && rows.iter().all(|row| row.seen.is_ok())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LifecycleScenario, Row, all_passed, render};

    fn row(seen: Result<&str, &str>) -> Row {
        Row {
            scenario: LifecycleScenario::ALL[0],
            seen: seen.map(str::to_owned).map_err(str::to_owned),
            took: Duration::from_millis(61_250),
        }
    }

    #[test]
    fn the_table_says_what_was_seen_and_why_a_scene_failed() {
        let text = render(&[row(Ok("2 nodes")), row(Err("no node\nbecause of that"))]);
        let name = LifecycleScenario::ALL[0].name();
        for wanted in ["passed    61.2 s  2 nodes", &format!("FAILED {name}"), "because of that"] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        assert!(text.ends_with("1 passed, 1 failed"), "{text}");
    }

    #[test]
    fn nothing_played_is_nothing_passed() {
        assert!(!all_passed(&[]));
        assert!(all_passed(&[row(Ok(""))]));
        assert!(!all_passed(&[row(Ok("")), row(Err("no"))]));
    }
}
