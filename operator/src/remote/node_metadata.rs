//! Labels, annotations and taints of one Node, written through its cluster's API.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use plan::machine::NodeAnswer;
use plan::node_metadata::NodeWrite;

use crate::error::chain;
use crds::names::NODE_FIELD_MANAGER;

/// Writes the Node, if it is the one, and the version, that was seen. What the API answers is no error: it is shown,
/// and hides nothing else of the Machine.
pub async fn write(client: Client, write: &NodeWrite) -> Option<NodeAnswer> {
    answer(try_write(&Api::all(client), write).await)
}

/// Taints first: what is applied may bring Pods to the Node.
async fn try_write(nodes: &Api<Node>, write: &NodeWrite) -> Result<(), kube::Error> {
    if let Some(patch) = &write.merge {
        let params = PatchParams { field_manager: Some(NODE_FIELD_MANAGER.into()), ..PatchParams::default() };
        nodes.patch(&write.node, &params, &Patch::Merge(patch)).await?;
    }
    if let Some(object) = &write.apply {
        // What others apply was left out of it.
        let params = PatchParams::apply(NODE_FIELD_MANAGER).force();
        nodes.patch(&write.node, &params, &Patch::Apply(object)).await?;
    }
    Ok(())
}

fn answer(written: Result<(), kube::Error>) -> Option<NodeAnswer> {
    match written {
        Ok(()) => None,
        // Gone, or another by now.
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Some(NodeAnswer::Changed),
        Err(error) => Some(NodeAnswer::Refused(chain(&error))),
    }
}
