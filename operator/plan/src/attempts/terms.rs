//! What holds for all attempts at the machines of one cluster, whatever object forms it.

use std::fmt;

use crds::{Machine, ObjectExt};

use super::retry::asked_retry;
use super::retry_decision::{Policy, Stops};

/// What is wanted of a cluster's machines, and how often it is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A digest of what is wanted of them: attempts at something else do not count.
    pub wanted: String,
    /// Attempts without progress before a person must ask for another; at least 1.
    pub most: usize,
    /// The retry that people ask for on all of them.
    pub retry: Option<String>,
}

/// The object that says so. It is asked only where that matters: `wanted` is a digest of all that it wants.
pub trait HasTerms: fmt::Debug + Sync {
    /// What holds for all attempts at its machines now.
    fn terms(&self) -> Terms;
}

impl Terms {
    /// Attempts at what is wanted now, so often that a person must act in the end.
    pub fn limited(&self, retries: Vec<String>) -> Policy {
        Policy { limit: Some(self.most), ..self.endless(retries) }
    }

    /// Attempts for as long as it takes.
    pub fn endless(&self, retries: Vec<String>) -> Policy {
        Policy { limit: None, wanted: self.wanted.clone(), host_generation: None, retries, stops: Stops::None }
    }

    /// The retries that people ask for on the Machine, and for all of them.
    pub fn asked_retries(&self, machine: &Machine) -> Vec<String> {
        let of_machine = asked_retry(machine.metadata.annotations.as_ref(), machine.generation());
        let of_machine = of_machine.map(|value| format!("machine {value}"));
        of_machine.into_iter().chain(self.retry.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crds::Machine;

    use super::Terms;

    #[test]
    fn of_whatever_object_the_cluster_is_its_terms_say_how_often_and_who_asked_for_more() {
        let terms = Terms { wanted: "d1".into(), most: 3, retry: Some("plane 7".into()) };
        let (limited, endless) = (terms.limited(Vec::new()), terms.endless(vec!["x".into()]));
        assert_eq!((limited.limit, endless.limit), (Some(3), None));
        assert_eq!((endless.wanted.as_str(), endless.retries.as_slice()), ("d1", &["x".to_owned()][..]));
        let machine = |annotations: &str| -> Machine {
            serde_yaml::from_str(&format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m, generation: 4, annotations: {{{annotations}}}}}, spec: {{clusterName: plane, role: worker, kubernetesVersion: 1.35.4}}}}"
            ))
            .unwrap()
        };
        assert_eq!(terms.asked_retries(&machine("")), ["plane 7"]);
        assert_eq!(terms.asked_retries(&machine("clusterwright.dev/retry: '4'")), ["machine 4", "plane 7"]);
    }
}
