//! Why inputs are refused.

use std::io;
use std::path::PathBuf;

use crds::Reason;
use crds::playbook_run::StepNotAllowed;
use thiserror::Error;

/// Why inputs are refused.
#[derive(Debug, Error)]
pub enum InputsError {
    /// A file could not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The text is not the one that was announced.
    #[error("the model's digest is {found}, announced was {announced}: the inputs were changed after they were frozen")]
    DigestMismatch {
        /// The digest that was announced.
        announced: String,
        /// The digest of the text.
        found: String,
    },
    /// It is no model.
    #[error("failed to read the model as RunInputs")]
    Parse(#[source] serde_json::Error),
    /// It is another run's.
    #[error("the model is the one of run {found}, not of {expected}")]
    OtherRun {
        /// The run to work for.
        expected: String,
        /// The model's run.
        found: String,
    },
    /// A value that would change meaning in Ansible, SSH or a file.
    #[error("{at}: {problem}")]
    Invalid {
        /// Path of the field.
        at: String,
        /// The error, and what is allowed.
        problem: String,
    },
    /// A step that changes what its intent may not.
    #[error(transparent)]
    StepNotAllowed(#[from] StepNotAllowed),
    /// A variable of a name that Ansible gives a meaning to.
    #[error("{at}: the name is reserved (ansible_* and Ansible's own variables are): choose another")]
    ReservedVariable {
        /// Path of the variable.
        at: String,
    },
    /// A credential is not there.
    #[error("host {host}: the secret {key} is missing or empty")]
    SecretMissing {
        /// The host.
        host: String,
        /// The file's name.
        key: String,
    },
    /// A secret of the backup is not there.
    #[error("{at}: the secret {key} is missing or empty")]
    BackupSecretMissing {
        /// The field that needs it.
        at: &'static str,
        /// The file's name.
        key: String,
    },
}

impl InputsError {
    /// The reason in the outcome.
    pub fn reason(&self) -> Reason {
        match self {
            InputsError::Read { .. } => Reason::InputsUnreadable,
            InputsError::DigestMismatch { .. } => Reason::InputsChanged,
            InputsError::Parse(_) | InputsError::OtherRun { .. } | InputsError::Invalid { .. } => Reason::InputsInvalid,
            InputsError::StepNotAllowed(_) => Reason::StepNotAllowed,
            InputsError::ReservedVariable { .. } => Reason::ReservedVariable,
            InputsError::SecretMissing { .. } | InputsError::BackupSecretMissing { .. } => Reason::SecretMissing,
        }
    }
}
