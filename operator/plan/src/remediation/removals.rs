//! Removals: no healthy machine is taken away while so many are sick at once that it is no trouble of single machines.

use crds::remediation_policy::Remediation;

use super::RemediationInput;
use super::limits::Limits;
use crate::message::count;

/// Whether healthy machines may be taken away, as far as the others are concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Removals {
    /// They may.
    #[default]
    Free,
    /// They may not; why, as a sentence.
    Held(String),
    /// The API of the cluster is out of reach: what was known before holds.
    Unknown,
}

impl Removals {
    /// By the policies that hold for the machines; where none does, by the default of `maxUnhealthy`.
    pub fn decide(input: &RemediationInput) -> Self {
        if input.unreachable.is_some() {
            return Self::Unknown;
        }
        let limits = Limits::new(input);
        let rules = input.machines.iter().filter_map(|health| health.rule.as_ref());
        let most = rules.map(|rule| limits.most(&rule.remediation)).min();
        let most = most.unwrap_or_else(|| limits.most(&Remediation::default()));
        if limits.sick <= most {
            return Self::Free;
        }
        Self::Held(format!(
            "{} of {} are sick at once, and maxUnhealthy allows {most}: no healthy one is taken away until fewer are",
            limits.sick,
            count(limits.judged, "machine")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::input;
    use super::Removals;

    #[test]
    fn healthy_machines_are_kept_while_more_are_sick_than_allowed_with_a_policy_and_without() {
        let mut input = input(0);
        input.sicken(&["w1", "w2", "w3"], 0);
        assert_eq!(Removals::decide(&input), Removals::Free, "30 % of ten");
        input.sicken(&["w4"], 0);
        let held = Removals::Held(
            "4 of 10 machines are sick at once, and maxUnhealthy allows 3: no healthy one is taken away until fewer are"
                .into(),
        );
        assert_eq!(Removals::decide(&input), held);
        input.machines.iter_mut().for_each(|health| health.rule = None);
        assert_eq!(Removals::decide(&input), held, "the default holds without a policy");
        input.unreachable = Some("the API does not answer".into());
        assert_eq!(Removals::decide(&input), Removals::Unknown);
    }
}
