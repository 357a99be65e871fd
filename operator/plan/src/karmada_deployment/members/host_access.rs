//! What there is of a kubeconfig that is read on a Host: the Host, what is kept, and the runs that read it. The
//! kubeconfig itself is nothing that is decided by.

use crds::{Host, PlaybookRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

/// Where and when a kubeconfig was read, as its Secret has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFrom {
    /// UID of the Host.
    #[serde(default)]
    pub host: String,
    /// The run that read it.
    #[serde(default)]
    pub run: String,
    /// When it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The server of the file, where it is one of the machine alone and the Host's address was put in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl ReadFrom {
    /// What the annotation of a Secret says. One that nobody can read says nothing, and is read anew.
    pub fn from_annotation(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

/// What was seen of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostAccess {
    /// The Host; `None`: it is not there.
    pub host: Option<Host>,
    /// Where the kubeconfig is from that is kept in the Secret `member_kubeconfig_secret`; `None`: none is.
    pub kept: Option<ReadFrom>,
    /// Why what is in the place of that Secret is not touched: it is another object's.
    pub foreign: Option<String>,
    /// The runs of this plane that read it for this member, oldest first.
    pub runs: Vec<PlaybookRun>,
    /// What the newest of them has brought.
    pub brought: Brought,
    /// Whether the member's API, asked just now, did not let in who has the kubeconfig that is kept, or is not the one
    /// that it is for.
    pub is_refused: bool,
}

/// What a run has brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Brought {
    /// Nothing, or nobody has looked.
    #[default]
    Nothing,
    /// A kubeconfig that can be used.
    Usable,
    /// One that cannot: why.
    Rejected(String),
}

impl HostAccess {
    /// Whether there is something that goes with the member.
    pub(super) fn has_left(&self) -> bool {
        self.kept.is_some() || !self.runs.is_empty()
    }
}
