//! Why a run did not start to play, and its exit code then.

use crds::Reason;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::inputs::InputsError;
use crate::inventory_check::Difference;
use crate::outcome;
use crate::playbooks::PlaybookMissing;
use crate::read_kubeconfigs::NotKept;
use crate::workdir::WorkdirError;

/// Why a run did not start to play.
#[derive(Debug, Error)]
pub enum RunError {
    /// The inputs are refused.
    #[error("the inputs are refused")]
    Inputs(#[from] InputsError),
    /// Ansible reads them otherwise.
    #[error("the inventory is refused")]
    Inventory(#[from] Difference),
    /// The private directory could not be made.
    #[error("failed to prepare the run")]
    Workdir(#[from] WorkdirError),
    /// No playbook.
    #[error("failed to find the playbooks")]
    Playbooks(#[from] PlaybookMissing),
    /// It would change machines, and holds no lock.
    #[error(
        "run {run} changes machines and holds no lock (it needs a clusterName, and a token of that cluster's lock): only a Probe of steps that change nothing needs none"
    )]
    NotLocked {
        /// Namespace and name.
        run: String,
    },
    /// No guard.
    #[error("failed to read the guard {}", file.display())]
    Guard {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// What was read is nowhere.
    #[error("the kubeconfigs that were read are not kept")]
    NotKept(#[from] NotKept),
    /// Something of the system.
    #[error("failed to {action}")]
    System {
        /// The action that failed.
        action: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl RunError {
    pub fn reason(&self) -> Reason {
        match self {
            RunError::Inputs(error) => error.reason(),
            RunError::Inventory(_) => Reason::InventoryMismatch,
            RunError::NotLocked { .. } => Reason::NotLocked,
            RunError::NotKept(_) => Reason::KubeconfigNotRead,
            RunError::Playbooks(_) => Reason::PlaybookMissing,
            RunError::Workdir(_) | RunError::Guard { .. } | RunError::System { .. } => Reason::Internal,
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Inputs(_)
            | RunError::Inventory(_)
            | RunError::NotLocked { .. }
            | RunError::NotKept(NotKept::NoSecret) => outcome::INPUTS_REFUSED,
            RunError::Workdir(_)
            | RunError::Playbooks(_)
            | RunError::Guard { .. }
            | RunError::NotKept(_)
            | RunError::System { .. } => outcome::INTERNAL,
        }
    }

    /// The whole chain in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}

/// An error of the system while doing something.
pub fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> RunError {
    let action = action.into();
    |source| RunError::System { action, source }
}
