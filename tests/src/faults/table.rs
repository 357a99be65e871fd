//! What is printed at the end: the table, what took hold beside the step that was meant, what failed and why, and the
//! last line.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::fault::{Fault, Place};
use super::verdict::Verdict;

/// What the sign in a cell means.
const GRAZED: &str = "
~: done in the step, by the guard's log, in each of its tries, the last at its first command; the fault needs a moment,
   and took hold just after the step. Judged, and measured, from there.
";

/// All verdicts of a run of faults.
pub type Results = BTreeMap<(Fault, Place), Verdict>;

/// The whole text. Faults are columns and steps are rows; a cell has the seconds to the recovery.
pub fn render(seed: u64, results: &Results) -> String {
    let mut text =
        format!("Faults, seed {seed}: seconds from the hit until the step was done and all worked again\n\n");
    let faults: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| results.keys().any(|(of, _)| of == fault)).collect();
    let (every, once): (Vec<Fault>, Vec<Fault>) = faults.into_iter().partition(|fault| fault.places().len() > 1);
    if !every.is_empty() {
        matrix(&mut text, &every, results);
    }
    for fault in once {
        for ((_, place), verdict) in results.iter().filter(|((of, _), _)| *of == fault) {
            let _ = writeln!(text, "  {:<18} {place:<26} {}", fault.name(), cell(verdict));
        }
    }
    if results.values().any(|verdict| matches!(verdict, Verdict::Grazed(..))) {
        text.push_str(GRAZED);
    }
    for ((fault, place), verdict) in results {
        match verdict {
            Verdict::Failed(broken) => {
                let _ = writeln!(text, "\nFAILED {} in {place}", fault.name());
                for promise in broken {
                    let _ = writeln!(text, "  - {promise}");
                }
            }
            Verdict::NotHit(why) => {
                let _ = writeln!(text, "\nNOT HIT {} in {place}: {why}", fault.name());
            }
            Verdict::Grazed(_, held) => {
                let _ = writeln!(text, "  ~ {} in {place} took hold in {held}", fault.name());
            }
            Verdict::Passed(_) => {}
        }
    }
    let _ = write!(text, "\n{}", last_line(results));
    text
}

/// `N passed, N failed`; what was not hit counts as failed, since nothing is proved of it.
pub fn last_line(results: &Results) -> String {
    let passed = results.values().filter(|verdict| is_passed(verdict)).count();
    format!("{passed} passed, {} failed", results.len() - passed)
}

/// Whether every cell has passed, and there is one.
pub fn all_passed(results: &Results) -> bool {
    !results.is_empty() && results.values().all(is_passed)
}

fn is_passed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Passed(_) | Verdict::Grazed(..))
}

fn matrix(text: &mut String, faults: &[Fault], results: &Results) {
    let _ = write!(text, "  {:<26}", "");
    for fault in faults {
        let _ = write!(text, " {:>16}", fault.name());
    }
    text.push('\n');
    for place in Place::all() {
        if !faults.iter().any(|fault| results.contains_key(&(*fault, place))) {
            continue;
        }
        let _ = write!(text, "  {place:<26}");
        for fault in faults {
            let cell = results.get(&(*fault, place)).map_or_else(|| "-".into(), cell);
            let _ = write!(text, " {cell:>16}");
        }
        text.push('\n');
    }
}

/// What stands in a cell.
pub fn cell(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed(after) => format!("{:.1} s", after.as_secs_f64()),
        Verdict::Grazed(after, _) => format!("~{:.1} s", after.as_secs_f64()),
        Verdict::Failed(_) => "FAILED".into(),
        Verdict::NotHit(_) => "NOT HIT".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Fault, Place, Results, Verdict, all_passed, last_line, render};

    fn results() -> Results {
        let first = Place::all()[0];
        [
            ((Fault::PodKilled, first), Verdict::Passed(Duration::from_millis(12_340))),
            ((Fault::PowerLost, first), Verdict::Failed(vec!["two runs overlapped".into()])),
            ((Fault::PodKilled, Place::LONGEST), Verdict::NotHit("it was over each time".into())),
            ((Fault::DiskFull, Place::LONGEST), Verdict::Passed(Duration::from_secs(40))),
            ((Fault::HostRebooted, first), Verdict::Grazed(Duration::from_millis(24_600), Place::all()[1])),
        ]
        .into()
    }

    #[test]
    fn the_table_has_each_cell_and_says_why_one_failed() {
        let text = render(7, &results());
        for wanted in [
            "seed 7",
            "12.3 s",
            "FAILED power-loss in install/bootstrap-os",
            "two runs overlapped",
            "NOT HIT",
            "disk-full",
            "40.0 s",
            "~24.6 s",
            "~: done in the step",
            "~ host-reboot in install/bootstrap-os took hold in install/preflight",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        assert!(text.ends_with("3 passed, 2 failed"), "{text}");
    }

    #[test]
    fn what_was_not_hit_is_not_passed() {
        let one = |verdict| -> Results { [((Fault::PodKilled, Place::LONGEST), verdict)].into() };
        assert_eq!(last_line(&one(Verdict::NotHit(String::new()))), "0 passed, 1 failed");
        assert!(!all_passed(&one(Verdict::NotHit(String::new()))));
        assert!(all_passed(&one(Verdict::Passed(Duration::ZERO))));
        assert!(!all_passed(&Results::new()), "nothing proved is nothing passed");
    }
}
