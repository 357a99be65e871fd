//! Approval: a person's word that machines are repaired although more are sick than `maxUnhealthy` allows. It is bound to
//! this very time: the value asked for is one that the object does not carry yet, and it stands in the status.

use crds::names::annotation;

use crate::cluster_deployment::scene::Scene;

/// What every such value has after its generation, so that it is no word for anything else.
const WORD: &str = "repair";

/// The word that is asked for, and whether it was given.
pub(super) struct Approval {
    /// `7.repair`, or `7.repair2` for a second time.
    pub value: String,
    pub given: bool,
}

impl Approval {
    pub fn of(scene: &Scene<'_>) -> Self {
        let status = scene.deployment.status.as_ref();
        let offered = status.and_then(|status| status.repair_approval.clone());
        let annotations = scene.deployment.metadata.annotations.as_ref();
        let there = annotations.and_then(|all| all.get(annotation::APPROVE));
        let given = offered.is_some() && offered.as_ref() == there;
        let current = format!("{}.{WORD}", scene.generation());
        // Once given it holds until fewer are sick; until then it is asked for the spec that there is.
        let stands = offered.filter(|offered| given || offered.starts_with(&current));
        let next = || match there.and_then(|there| there.strip_prefix(&current)) {
            None => current.clone(),
            Some(number) => format!("{current}{}", number.parse::<u32>().unwrap_or(1) + 1),
        };
        Self {
            value: stands.unwrap_or_else(next),
            given,
        }
    }
}

/// Whether a value of `approve` is meant for repairs, and for nothing else.
pub(in crate::cluster_deployment) fn is_for_repairs(value: &str) -> bool {
    let (_, word) = value.split_once('.').unwrap_or_default();
    word.starts_with(WORD)
}
