//! What is wished of an etcd, and by whom.

use crds::PlaybookRun;
use crds::cluster_deployment::Defragmentation;
use crds::commands::{self, Target};
use crds::names::annotation;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::attempts;

/// What is wished of an etcd, and by whom.
pub(crate) struct Wish<'a> {
    pub now: Timestamp,
    /// The schedule; none: it is defragmented when a person asks for it.
    pub schedule: Option<&'a Defragmentation>,
    /// The field that has it.
    pub field: &'static str,
    /// Whose etcd it is.
    pub target: Target,
    pub metadata: &'a ObjectMeta,
    /// When it stood.
    pub installed: Option<Timestamp>,
    /// The runs that were made for it.
    pub own_runs: &'a [&'a PlaybookRun],
}

impl Wish<'_> {
    /// Which edit of the object it is of.
    pub(super) fn generation(&self) -> i64 {
        self.metadata.generation.unwrap_or_default()
    }

    /// What a person types to have one.
    pub fn command(&self) -> String {
        let value = attempts::next_value(self.metadata.annotations.as_ref(), annotation::DEFRAGMENT, self.generation());
        commands::annotate(self.target, self.metadata, annotation::DEFRAGMENT, &value)
    }
}
