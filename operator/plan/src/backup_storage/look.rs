//! What a Job that looks at a storage has found.

use crds::Reason;
use crds::backup::StorageLook;
use crds::names::label;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use crate::message::quote;
use crate::storage_job::{Progress, progress};

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
    match progress(job, pods, label::STORAGE) {
        Progress::UnderWay(trouble) => Look::UnderWay(trouble),
        Progress::Ended(code, said) => match serde_json::from_str(&said) {
            Ok(look) => Look::Found(Box::new(look)),
            Err(_) => {
                let message = format!("the executor's Pod that looked ended with code {code}: {said}");
                Look::Unusable(Reason::StorageFailed.into(), quote(message))
            }
        },
        Progress::NotStarted(why) => {
            let message = format!("the executor's Pod that looks did not come up in time: {why}");
            Look::Unusable(Reason::PodNotStarted.into(), quote(message))
        }
    }
}
