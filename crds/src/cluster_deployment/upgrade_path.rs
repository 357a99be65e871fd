//! How a cluster gets to a version that is more than one minor away.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::KubernetesVersion;

/// The way to a version that is more than one minor away. Control planes leave out no minor, so each is an upgrade of
/// its own, of all machines, one after the other.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradePath {
    /// One version of each minor between the one that the cluster has and `kubernetesVersion`, in any order, e.g.
    /// `[1.35.4]` for 1.34.4 to 1.36.2; at most 4. The artifact bundle must have them. Those that are behind the
    /// cluster have no effect. Default none: only the next minor may be wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    #[x_kube(validation = Rule::new("self.all(v, self.exists_one(w, w.split('.')[1] == v.split('.')[1]))")
        .message("two versions are of the same minor: the cluster takes one of each on its way"))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub via: Vec<KubernetesVersion>,
}

impl UpgradePath {
    /// The version of this minor that is on the way.
    pub fn of_minor(&self, minor: u8) -> Option<KubernetesVersion> {
        self.via.iter().copied().find(|version| version.minor() == minor)
    }
}
