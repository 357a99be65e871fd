//! Whether a fault took hold: whether it disturbed what it was done to, and in which step. A fault that a run did not
//! notice proves nothing, however well the install ended.

use super::fault::{Fault, Place};

/// The effect of a fault that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// It took hold in the step that was meant.
    Held,
    /// It was done in that step, needed a moment, and took hold in this later one.
    Grazed(Place),
    /// It came too late, or disturbed nothing.
    Missed(String),
}

/// The part that a fault takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The run: it ends other than well.
    Run,
    /// The host: the run ends other than well, or waits until the host is back.
    Host,
    /// The operator that leads: another leads.
    Leader,
    /// What the run no longer needs: it goes on.
    Nothing,
}

/// How the run goes on that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// It has not ended.
    Going,
    /// It ended other than well.
    Interrupted,
    /// It ended well.
    Succeeded,
}

/// What is known of a hit.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Where it was done.
    pub place: Place,
    /// Whether a later step had begun before.
    pub late: bool,
    /// The step of the last command that the run began before what was taken away was back.
    pub last: Place,
    /// The step that the run says it ended in.
    pub said: Option<Place>,
    /// Whether a command of the run was at work when it was done, or has begun since.
    pub under_way: bool,
    /// How the run goes on.
    pub run: Run,
    /// Whether what was taken away is back.
    pub back: bool,
    /// Whether the run has begun a command since then.
    pub resumed: bool,
    /// Whether the host was away from one moment to the next, with a command of the run at work.
    pub cut_off: bool,
    /// Whether another operator leads.
    pub led_by_another: bool,
    /// Whether the step is done.
    pub done: bool,
}

impl Fault {
    /// What it takes away.
    pub fn takes(self) -> Takes {
        match self {
            Fault::NetworkCut | Fault::HostRebooted | Fault::PowerLost => Takes::Host,
            Fault::OperatorKilled | Fault::OperatorStopped => Takes::Leader,
            Fault::SpecEdited | Fault::InputsDeleted | Fault::SecretRotated => Takes::Nothing,
            _ => Takes::Run,
        }
    }
}

/// The effect of a fault, as soon as it is certain.
pub fn fault_effect(takes: Takes, facts: &Facts) -> Option<FaultEffect> {
    let found = match takes {
        Takes::Run => match facts.run {
            Run::Going => None,
            Run::Interrupted => Some(held(facts)),
            Run::Succeeded => Some(FaultEffect::Missed("the run ended well".into())),
        },
        Takes::Host => match facts.run {
            Run::Interrupted => Some(held(facts)),
            _ if facts.back && facts.resumed => Some(held(facts)),
            Run::Succeeded if facts.back && facts.cut_off => Some(held(facts)),
            Run::Succeeded if facts.back => Some(FaultEffect::Missed("the run had no more need of the host".into())),
            _ => None,
        },
        Takes::Leader => facts.led_by_another.then(|| at_once(facts)),
        Takes::Nothing => facts.done.then(|| at_once(facts)),
    };
    found.map(
        |found| {
            if facts.late { FaultEffect::Missed("the step was over when the fault came".into()) } else { found }
        },
    )
}

fn held(facts: &Facts) -> FaultEffect {
    // Its first command may never have come to the machine, but that of a step further on cannot be the next.
    let next = |said: &Place| said.rank() == facts.last.rank() + 1;
    let at = facts.said.filter(next).unwrap_or(facts.last);
    if at.rank() > facts.place.rank() { FaultEffect::Grazed(at) } else { FaultEffect::Held }
}

fn at_once(facts: &Facts) -> FaultEffect {
    if facts.under_way {
        FaultEffect::Held
    } else {
        FaultEffect::Missed("the run had begun its last command, and ended it".into())
    }
}

#[cfg(test)]
mod tests {
    use super::{Facts, Fault, FaultEffect, Place, Run, Takes, fault_effect};

    fn place(name: &str) -> Place {
        Place::from_name(name).unwrap()
    }

    fn facts() -> Facts {
        Facts {
            place: place("install/prepare"),
            late: false,
            last: place("install/prepare"),
            said: None,
            under_way: true,
            run: Run::Going,
            back: false,
            resumed: false,
            cut_off: false,
            led_by_another: false,
            done: false,
        }
    }

    fn check(takes: Takes, change: impl FnOnce(&mut Facts), expected: Option<FaultEffect>) {
        let mut facts = facts();
        change(&mut facts);
        let found = fault_effect(takes, &facts).map(|effect| match effect {
            FaultEffect::Missed(_) => missed(),
            other => other,
        });
        assert_eq!(found, expected, "{takes:?} {facts:?}");
    }

    fn missed() -> FaultEffect {
        FaultEffect::Missed(String::new())
    }

    #[test]
    fn what_ends_a_run_held_in_the_step_where_the_run_ended() {
        check(Takes::Run, |_| (), None);
        check(Takes::Run, |facts| facts.run = Run::Interrupted, Some(FaultEffect::Held));
        let later = place("install/container-runtime");
        let grazed = |facts: &mut Facts| {
            facts.run = Run::Interrupted;
            facts.last = later;
        };
        check(Takes::Run, grazed, Some(FaultEffect::Grazed(later)));
    }

    #[test]
    fn a_run_may_have_come_to_the_next_step_whose_first_command_never_began_and_no_further() {
        let said = |name: &'static str| {
            move |facts: &mut Facts| {
                facts.run = Run::Interrupted;
                facts.said = Some(place(name));
            }
        };
        let next = place("install/container-runtime");
        check(Takes::Host, said("install/container-runtime"), Some(FaultEffect::Grazed(next)));
        check(Takes::Host, said("install/prepare"), Some(FaultEffect::Held));
        check(Takes::Host, said("install/etcd"), Some(FaultEffect::Held));
    }

    #[test]
    fn a_run_that_ended_well_was_not_disturbed_by_what_should_have_ended_it() {
        check(Takes::Run, |facts| facts.run = Run::Succeeded, Some(missed()));
    }

    #[test]
    fn a_step_that_is_done_says_nothing_before_it_is_certain_that_the_fault_took_hold() {
        for takes in [Takes::Run, Takes::Host, Takes::Leader] {
            check(takes, |facts| facts.done = true, None);
        }
    }

    #[test]
    fn a_host_that_was_away_held_if_the_run_ended_or_waited_for_it() {
        check(Takes::Host, |facts| facts.run = Run::Interrupted, Some(FaultEffect::Held));
        check(Takes::Host, |facts| facts.back = true, None);
        let waited = |facts: &mut Facts| (facts.back, facts.resumed) = (true, true);
        check(Takes::Host, waited, Some(FaultEffect::Held));
        let last_command = |facts: &mut Facts| {
            facts.run = Run::Succeeded;
            (facts.back, facts.cut_off) = (true, true);
        };
        check(Takes::Host, last_command, Some(FaultEffect::Held));
        let over = |facts: &mut Facts| (facts.run, facts.back) = (Run::Succeeded, true);
        check(Takes::Host, over, Some(missed()));
    }

    #[test]
    fn an_operator_held_once_another_leads_and_if_the_run_was_under_way() {
        check(Takes::Leader, |facts| facts.led_by_another = true, Some(FaultEffect::Held));
        let over = |facts: &mut Facts| (facts.led_by_another, facts.under_way) = (true, false);
        check(Takes::Leader, over, Some(missed()));
    }

    #[test]
    fn what_a_run_no_longer_needs_held_if_the_run_was_under_way() {
        check(Takes::Nothing, |facts| facts.done = true, Some(FaultEffect::Held));
        let over = |facts: &mut Facts| (facts.done, facts.under_way) = (true, false);
        check(Takes::Nothing, over, Some(missed()));
    }

    #[test]
    fn what_came_when_the_next_step_had_begun_did_not_hit_this_one_whatever_it_did() {
        for takes in [Takes::Run, Takes::Host] {
            let late = |facts: &mut Facts| (facts.late, facts.run) = (true, Run::Interrupted);
            check(takes, late, Some(missed()));
        }
    }

    #[test]
    fn what_leaves_the_run_alone_takes_no_run_and_no_host() {
        for fault in Fault::ALL {
            let alone = matches!(fault.takes(), Takes::Leader | Takes::Nothing);
            assert_eq!(alone, fault.leaves_the_run_alone(), "{fault:?}");
        }
    }
}
