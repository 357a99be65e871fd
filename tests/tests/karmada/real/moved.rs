//! What must stay as it is while a plane is moved: in members, and in the plane itself.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use e2e::karmada::works::api_of;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt};

use super::members::Member;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Kinds of a member that a plane, or the operator for it, writes: group, version, kind.
const IN_MEMBERS: [(&str, &str, &str); 9] = [
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("", "v1", "Pod"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "Namespace"),
    (RBAC, "v1", "ClusterRole"),
    (RBAC, "v1", "ClusterRoleBinding"),
];

/// What a plane cannot lose without losing what members run.
const IN_PLANE: [(&str, &str, &str); 6] = [
    ("apps", "v1", "Deployment"),
    ("", "v1", "ConfigMap"),
    ("policy.karmada.io", "v1alpha1", "PropagationPolicy"),
    ("work.karmada.io", "v1alpha2", "ResourceBinding"),
    ("work.karmada.io", "v1alpha1", "Work"),
    ("cluster.karmada.io", "v1alpha1", "Cluster"),
];

/// UIDs and resourceVersions of what is not being deleted, by `Kind namespace/name`.
#[derive(Clone)]
pub(super) struct Seen(BTreeMap<String, (String, String)>);

impl Seen {
    pub(super) async fn in_member(member: &Member) -> Result<Self> {
        Self::of_kinds(&member.client, &IN_MEMBERS).await
    }

    pub(super) async fn in_plane(plane: &Client) -> Result<Self> {
        Self::of_kinds(plane, &IN_PLANE).await
    }

    async fn of_kinds(client: &Client, kinds: &[(&str, &str, &str)]) -> Result<Self> {
        let mut seen = BTreeMap::new();
        for (group, version, kind) in kinds {
            let api: Api<DynamicObject> = api_of(client, group, version, kind);
            let listed = api.list(&ListParams::default()).await?;
            for object in listed.into_iter().filter(|object| object.metadata.deletion_timestamp.is_none()) {
                let title = format!("{kind} {}/{}", object.namespace().unwrap_or_default(), object.name_any());
                seen.insert(title, (object.uid().unwrap_or_default(), object.resource_version().unwrap_or_default()));
            }
        }
        Ok(Self(seen))
    }

    /// Nothing was made, written or deleted since.
    pub(super) fn is_untouched(&self, now: &Self, whose: &str) -> Result<()> {
        // An agent that reaches no plane is not ready.
        let is_agents = |title: &str| title.contains(" karmada-system/");
        let all = self.0.keys().chain(now.0.keys()).filter(|title| !is_agents(title));
        let touched: Vec<&String> = all.filter(|title| self.0.get(*title) != now.0.get(*title)).collect();
        ensure!(touched.is_empty(), "touched in {whose}: {touched:?}");
        Ok(())
    }

    /// All that was there still is, but for these: nothing was deleted, nor made anew under the same name.
    pub(super) fn is_kept(&self, now: &Self, whose: &str, but: &[&str]) -> Result<()> {
        let uid = |seen: &Self, title: &str| seen.0.get(title).map(|(uid, _)| uid.clone());
        let excepted = |title: &str| but.iter().any(|start| title.starts_with(start));
        let lost = self.0.keys().filter(|title| uid(self, title) != uid(now, title));
        let lost: Vec<&String> = lost.filter(|title| !excepted(title)).collect();
        ensure!(lost.is_empty(), "lost, or made anew, in {whose}: {lost:?}");
        Ok(())
    }
}
