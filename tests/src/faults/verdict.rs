//! Whether what was seen after a hit is what was promised.

use std::collections::BTreeSet;
use std::time::Duration;

use crds::step::Step;

use super::fault::{Ending, Fault, Place};
use super::fault_effect::FaultEffect;

/// What was seen of one hit.
#[derive(Clone, Debug)]
pub struct Hit {
    /// What was done.
    pub fault: Fault,
    /// In which step.
    pub place: Place,
    /// On which Host the step worked.
    pub host: String,
    /// The steps that the status may name: the one that was hit, one just left, since a status is up to a second old,
    /// and those that the run still came to.
    pub steps: BTreeSet<Step>,
    /// Whether it took hold, and where.
    pub effect: FaultEffect,
    /// Whether the run that was hit ended other than well.
    pub interrupted: bool,
    /// The reasons that this run and its hosts gave.
    pub reasons: BTreeSet<String>,
    /// What the ClusterDeployment said from the hit to the next one.
    pub said: Vec<String>,
    /// From the hit until the step in which it took hold was done and what was hit worked again.
    pub recovered: Option<Duration>,
    /// Promises of this very fault that were not kept.
    pub broken: Vec<String>,
}

/// What was seen of the whole install.
#[derive(Clone, Debug, Default)]
pub struct Install {
    /// What the guards' logs show that must never be: overlaps, a fence that went down.
    pub guards: Vec<String>,
    /// How many commands the guards have written down.
    pub commands: usize,
    /// Each `kubeadm init` that was started.
    pub inits: Vec<Init>,
    /// The UIDs that the cluster's namespace kube-system had.
    pub uids: BTreeSet<String>,
    /// What kept it from ending as it has to.
    pub end: Option<String>,
}

/// A `kubeadm init`, as the machine's processes show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// The machine.
    pub machine: String,
    /// Whether the machine had recorded before that it is a node.
    pub after_one_that_ended_well: bool,
    /// Whether another one was at work at the same time.
    pub beside_another: bool,
}

/// What is to be said of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All promises were kept; seconds to the recovery.
    Passed(Duration),
    /// All promises were kept, but the fault took hold in this later step only.
    Grazed(Duration, Place),
    /// These were not.
    Failed(Vec<String>),
    /// The fault came too late each time, never, or disturbed nothing: nothing is proved.
    NotHit(String),
}

/// Judges one hit.
pub fn judge(hit: &Hit, install: &Install) -> Verdict {
    let mut broken = install.guards.clone();
    broken.extend(of_inits(&install.inits));
    if install.commands == 0 {
        broken.push("no guard has written anything: overlaps cannot be ruled out".into());
    }
    if install.uids.len() > 1 {
        broken.push(format!("the cluster was made anew: kube-system had the UIDs {:?}", install.uids));
    }
    broken.extend(install.end.clone());
    if let FaultEffect::Missed(why) = &hit.effect {
        // Whatever came of it must not have harmed the install.
        return if broken.is_empty() { Verdict::NotHit(why.clone()) } else { Verdict::Failed(broken) };
    }
    broken.extend(hit.broken.iter().cloned());
    if hit.interrupted && hit.fault.leaves_the_run_alone() {
        broken.push("the run under way did not go on as if nothing had happened".into());
    }
    if hit.interrupted {
        broken.extend(of_sentences(hit));
    }
    match hit.recovered {
        Some(after) if broken.is_empty() => match hit.effect {
            FaultEffect::Grazed(held) => Verdict::Grazed(after, held),
            _ => Verdict::Passed(after),
        },
        Some(_) => Verdict::Failed(broken),
        None => {
            broken.push(format!("it did not recover; last said: {:?}", hit.said.last()));
            Verdict::Failed(broken)
        }
    }
}

fn of_inits(inits: &[Init]) -> Vec<String> {
    let mut broken = Vec::new();
    for init in inits {
        if init.after_one_that_ended_well {
            broken.push(format!("a second kubeadm init on {}, after one that ended well", init.machine));
        }
        if init.beside_another {
            broken.push(format!("two kubeadm init at the same time on {}", init.machine));
        }
    }
    broken
}

/// The person on call has to learn from one sentence where, in what, why, and what happens next.
fn of_sentences(hit: &Hit) -> Option<String> {
    let deleting = hit.fault.ending() == Ending::Gone;
    if deleting || hit.said.iter().any(|said| lacks(hit, said).is_empty()) {
        return None;
    }
    let best = hit.said.iter().min_by_key(|said| lacks(hit, said).len());
    Some(match best {
        Some(said) => format!("no status named all of it; nearest lacks {}: {said:?}", lacks(hit, said).join(", ")),
        None => "the status said nothing between the hit and the recovery".into(),
    })
}

fn lacks(hit: &Hit, said: &str) -> Vec<&'static str> {
    let names = |words: &[&str]| words.iter().any(|word| said.contains(word));
    // After a cancel a person decides what is next.
    let next = ["goes on where it stopped", "attempt", "tried again", "to go on"];
    let reason = hit.reasons.iter().any(|reason| said.contains(reason.as_str())) || said.contains("cancel");
    let mut lacks = Vec::new();
    if !said.contains(&hit.host) {
        lacks.push("the host");
    }
    if !hit.steps.iter().any(|step| said.contains(step.name())) {
        lacks.push("the step");
    }
    if !reason {
        lacks.push("the reason");
    }
    if !names(&next) {
        lacks.push("the next attempt");
    }
    lacks
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Fault, FaultEffect, Hit, Init, Install, Place, Verdict, judge};

    const WELL: &str = "installing c-cp-1 (h-cp) was interrupted in control-plane (ContactLost): the Pod is gone; attempt 2 begins at 10:00:00 UTC";

    fn hit() -> Hit {
        Hit {
            fault: Fault::PodKilled,
            place: Place::LONGEST,
            host: "h-cp".into(),
            steps: [Place::LONGEST.step].into(),
            effect: FaultEffect::Held,
            interrupted: true,
            reasons: ["ContactLost".to_owned()].into(),
            said: vec!["installing c-cp-1 (h-cp): control-plane, task 3 of 5".into(), WELL.into()],
            recovered: Some(Duration::from_secs(21)),
            broken: Vec::new(),
        }
    }

    fn install() -> Install {
        Install { commands: 40, inits: vec![init()], uids: ["u".to_owned()].into(), ..Install::default() }
    }

    fn init() -> Init {
        Init { machine: "h-cp".into(), after_one_that_ended_well: false, beside_another: false }
    }

    fn check(hit: &Hit, install: &Install, expected: Result<(), &str>) {
        match (judge(hit, install), expected) {
            (Verdict::Passed(after), Ok(())) => assert_eq!(Some(after), hit.recovered),
            (Verdict::Failed(broken), Err(part)) => {
                assert!(broken.iter().any(|text| text.contains(part)), "{part} is not in {broken:?}");
            }
            (verdict, expected) => panic!("{verdict:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn what_was_interrupted_said_so_and_went_on_has_passed() {
        check(&hit(), &install(), Ok(()));
    }

    #[test]
    fn an_overlap_fails_whatever_else_is_well() {
        let overlap = Install { guards: vec!["1-2 began while 1-1 was at work".into()], ..install() };
        check(&hit(), &overlap, Err("at work"));
    }

    #[test]
    fn what_disturbed_nothing_is_not_hit_however_well_all_ended() {
        let missed = Hit { effect: FaultEffect::Missed("the run ended well".into()), interrupted: false, ..hit() };
        assert_eq!(judge(&missed, &install()), Verdict::NotHit("the run ended well".into()));
        let overlap = Install { guards: vec!["1-2 began while 1-1 was at work".into()], ..install() };
        check(&missed, &overlap, Err("at work"));
    }

    #[test]
    fn what_took_hold_in_a_later_step_is_told_apart_and_judged_all_the_same() {
        let held = Place::from_name("install/network").unwrap();
        let grazed = Hit { effect: FaultEffect::Grazed(held), ..hit() };
        let after = Duration::from_secs(21);
        assert_eq!(judge(&grazed, &install()), Verdict::Grazed(after, held));
        let silent = Hit { said: Vec::new(), ..grazed };
        check(&silent, &install(), Err("said nothing"));
    }

    #[test]
    fn silent_guards_prove_nothing() {
        check(&hit(), &Install { commands: 0, ..install() }, Err("cannot be ruled out"));
    }

    #[test]
    fn a_second_init_or_another_kube_system_fails() {
        let with = |init| Install { inits: vec![init], ..install() };
        let after = Init { after_one_that_ended_well: true, ..init() };
        let beside = Init { beside_another: true, ..init() };
        check(&hit(), &with(after), Err("a second kubeadm init"));
        check(&hit(), &with(beside), Err("at the same time"));
        let anew = Install { uids: ["u".to_owned(), "v".to_owned()].into(), ..install() };
        check(&hit(), &anew, Err("made anew"));
    }

    #[test]
    fn an_init_that_was_cut_short_may_be_repeated() {
        check(&hit(), &Install { inits: vec![init(), init()], ..install() }, Ok(()));
    }

    #[test]
    fn each_word_that_the_person_on_call_needs_is_asked_for() {
        for (word, lack) in [
            ("(h-cp)", "the host"),
            ("control-plane", "the step"),
            ("ContactLost", "the reason"),
            ("attempt 2 begins at 10:00:00 UTC", "the next attempt"),
        ] {
            let hit = Hit { said: vec![WELL.replace(word, "")], ..hit() };
            check(&hit, &install(), Err(lack));
        }
        check(&Hit { said: Vec::new(), ..hit() }, &install(), Err("said nothing"));
    }

    #[test]
    fn a_run_that_only_the_operator_was_taken_from_needs_no_sentence_and_no_second_attempt() {
        let calm = Hit { fault: Fault::OperatorKilled, interrupted: false, said: Vec::new(), ..hit() };
        check(&calm, &install(), Ok(()));
        check(&Hit { interrupted: true, ..calm }, &install(), Err("as if nothing had happened"));
    }

    #[test]
    fn without_recovery_or_with_a_bad_end_or_a_broken_promise_it_fails() {
        check(&Hit { recovered: None, ..hit() }, &install(), Err("did not recover"));
        check(&hit(), &Install { end: Some("not Ready".into()), ..install() }, Err("not Ready"));
        check(&Hit { broken: vec!["the host is not quiet".into()], ..hit() }, &install(), Err("quiet"));
    }
}
