//! Certificates of a member alone, each in a Secret of its own beside the KarmadaDeployment.

use crds::{KarmadaDeployment, ObjectExt};

use super::super::contents::Files;

/// Whose certificate it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// The agent's, of a Pull member.
    Agent,
    /// The estimator's.
    Estimator,
}

impl Leaf {
    /// What messages call its owner.
    pub const fn owner(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Estimator => "estimator",
        }
    }

    /// Name of its Secret, in the object's namespace.
    pub fn secret(self, object: &KarmadaDeployment, member: &str) -> String {
        match self {
            Self::Agent => format!("{}-agent-{member}", object.name()),
            // The host namespace may be this one, and has objects of the name of the estimator's Service.
            Self::Estimator => format!("{}-certificate-estimator-{member}", object.name()),
        }
    }
}

/// A certificate as it is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certificate {
    /// `<stem>.crt` and `<stem>.key`; `None`: its Secret is not there, or nobody has looked.
    pub files: Option<Files>,
    /// Whether it is missing, is not what `leaf_wanted` says, or is to be renewed.
    pub is_due: bool,
}

/// Those of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certificates {
    /// Its agent's, of Pull members only.
    pub agent: Certificate,
    /// Its estimator's; looked at where `has_estimator` says so.
    pub estimator: Certificate,
}
