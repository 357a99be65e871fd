//! The log of an executor's Pod: read once it has ended, compressed, cut to what ConfigMaps hold.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, ResourceExt};
use plan::job::CONTAINER;
use plan::playbook_run::LogSeen;
use tokio::time::timeout;

use crate::context::Context;
use crate::error::{Error, ResultExt, chain};

/// A node keeps about 10 MiB of a container's log.
const MOST_BYTES: i64 = 24 << 20;
/// How long a node may take until it begins to answer, and until all is there: others wait for the place of this pass.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
const ENDS_WITHIN: Duration = Duration::from_secs(20);
/// How often a log is asked for.
const MOST_TRIES: u32 = 3;
/// What a ConfigMap of ours holds.
const PART_BYTES: usize = 900 << 10;

/// The log in parts that are one gzip stream together. A log that cannot be read any more (its node is gone) holds
/// nothing up for long: what came of the run counts.
pub(super) async fn read(ctx: &Context, pod: &Pod) -> LogSeen {
    let uid = pod.uid().unwrap_or_default();
    let error = match try_read(ctx, pod).await {
        Ok(parts) => {
            ctx.log_tries.end(&uid);
            return LogSeen::Parts(parts);
        }
        Err(error) => error,
    };
    let why = chain(&error);
    // A Pod or a node that is gone does not come back.
    if !error.is_not_found() && ctx.log_tries.count(&uid) < MOST_TRIES {
        return LogSeen::NotYet(why);
    }
    ctx.log_tries.end(&uid);
    tracing::warn!(pod = %pod.name_any(), error = %why, "the log is lost");
    LogSeen::Lost(why)
}

async fn try_read(ctx: &Context, pod: &Pod) -> Result<Vec<Vec<u8>>, Error> {
    let name = pod.name_any();
    let action = || format!("read the log of Pod {name}");
    let late = |_| Error::Failed { action: action(), source: "the node does not answer in time".into() };
    let api: Api<Pod> = Api::namespaced(ctx.client.clone(), &pod.namespace().unwrap_or_default());
    let params = LogParams { container: Some(CONTAINER.into()), limit_bytes: Some(MOST_BYTES), ..LogParams::default() };
    let answer = timeout(ANSWERS_WITHIN, api.log_stream(&name, &params)).await.map_err(late)?.doing(action)?;
    // Bytes: what a machine prints, and what is cut in the middle, need not be text.
    let mut log = Vec::new();
    let mut answer = std::pin::pin!(answer);
    let read = timeout(ENDS_WITHIN, answer.read_to_end(&mut log)).await.map_err(late)?;
    read.doing(action)?;
    let parts = tokio::task::spawn_blocking(move || parts(&log)).await;
    parts.map_err(std::io::Error::other).and_then(|parts| parts).doing(|| format!("compress the log of Pod {name}"))
}

fn parts(log: &[u8]) -> std::io::Result<Vec<Vec<u8>>> {
    if log.is_empty() {
        return Ok(Vec::new());
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(log)?;
    Ok(encoder.finish()?.chunks(PART_BYTES).map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::{PART_BYTES, parts};
    use std::io::Read;

    #[test]
    fn the_parts_are_the_log_when_put_together_and_each_fits() {
        // Text that does not compress well.
        let mut seed = 1_u64;
        let text: String = (0..3_000_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b' ' + u8::try_from((seed >> 33) % 94).unwrap())
            })
            .collect();
        let parts = parts(text.as_bytes()).unwrap();
        assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= PART_BYTES));
        let whole = parts.concat();
        let mut read = String::new();
        flate2::read::GzDecoder::new(whole.as_slice()).read_to_string(&mut read).unwrap();
        assert!(read == text);
        assert!(super::parts(b"").unwrap().is_empty());
    }
}
