//! How far a Job is that does something with a storage.

use crds::ObjectExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::message::quote;
use crate::playbook_run::pod;

/// How far a Job is.
pub(crate) enum Progress {
    /// It goes on; what its Pod waits for.
    UnderWay(Option<String>),
    /// Its Pod ended with this code and message.
    Ended(i32, String),
    /// Its Pod did not come up: why.
    NotStarted(String),
}

/// How far this Job is, by the Pods with the label.
pub(crate) fn progress(job: &Job, pods: &[Pod], label: &str) -> Progress {
    let of_job = |pod: &&Pod| {
        let labels = pod.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(label)) && pod.is_owned_by(job.uid())
    };
    let pod = pods.iter().find(of_job);
    if let Some(ended) = pod.and_then(pod::terminated) {
        return Progress::Ended(ended.exit_code, ended.message.clone().unwrap_or_default());
    }
    let trouble = pod.filter(|pod| !pod::has_begun(pod)).map(|pod| pod::waits_for(pod).message);
    let mut conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let failed = conditions.find(|condition| condition.type_ == "Failed" && condition.status == "True");
    match failed {
        Some(failed) => {
            Progress::NotStarted(trouble.or(failed.message.clone()).unwrap_or_else(|| "its Job failed".into()))
        }
        None => Progress::UnderWay(trouble.map(quote)),
    }
}
