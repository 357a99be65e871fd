//! What a Job that looks at a storage has found.

use crds::backup::StorageLook;
use crds::names::label;
use crds::{ObjectExt, Reason};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::message::quote;
use crate::playbook_run::pod;

/// What is known of a look.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Look {
    /// It goes on; what its Pod waits for.
    UnderWay(Option<String>),
    /// Somebody looked.
    Found(Box<StorageLook>),
    /// Nobody could look: reason and message.
    Unusable(String, String),
}

/// What came of this Job.
pub(super) fn look(job: &Job, pods: &[Pod]) -> Look {
    let of_job = |pod: &&Pod| {
        let storage = pod.metadata.labels.as_ref().and_then(|labels| labels.get(label::STORAGE));
        storage.is_some() && pod.is_owned_by(job.uid())
    };
    let pod = pods.iter().find(of_job);
    if let Some(ended) = pod.and_then(pod::terminated) {
        let said = ended.message.as_deref().unwrap_or_default();
        return match serde_json::from_str(said) {
            Ok(look) => Look::Found(Box::new(look)),
            Err(_) => {
                let message = format!("the executor's Pod that looked ended with code {}: {said}", ended.exit_code);
                Look::Unusable(Reason::StorageFailed.into(), quote(message))
            }
        };
    }
    let trouble = pod.filter(|pod| !pod::has_begun(pod)).map(|pod| pod::waits_for(pod).message);
    let mut conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let failed = conditions.find(|condition| condition.type_ == "Failed" && condition.status == "True");
    match failed {
        Some(failed) => {
            let why = trouble.or(failed.message.clone()).unwrap_or_else(|| "its Job failed".into());
            let message = format!("the executor's Pod that looks did not come up in time: {why}");
            Look::Unusable(Reason::PodNotStarted.into(), quote(message))
        }
        None => Look::UnderWay(trouble.map(quote)),
    }
}
