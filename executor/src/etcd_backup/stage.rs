//! Brings a backup to the machines: the verbs of a run with `staging`.

use crds::Reason;
use crds::etcd_restore::StagedBackup;
use serde::Deserialize;

use super::abandoned::{abandoned, cleaned};
use super::answer::Answer;
use super::events::Events;
use super::found::FoundBackup;
use super::inspect::inspect;
use super::send::send;
use super::staging_settings::StagingSettings;
use crate::secrets::Secrets;

/// What the machines agree on, as an action of Ansible found it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Agreed {
    current_revision: Option<i64>,
    bump: i64,
    #[serde(rename = "clusterID")]
    cluster_id: String,
}

impl Agreed {
    /// Reads it; the error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let agreed: Self = serde_json::from_str(text).map_err(|error| format!("it is no report: {error}"))?;
        let is_id = (1..=16).contains(&agreed.cluster_id.len())
            && agreed.cluster_id.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if agreed.bump < 1 || agreed.current_revision.is_some_and(|revision| revision < 1) || !is_id {
            return Err("bump and currentRevision are positive, and clusterID is hexadecimal".to_owned());
        }
        Ok(agreed)
    }
}

/// Says whether the backup may be restored, and what it is.
pub(super) async fn inspected(settings: &StagingSettings) -> Answer {
    match unless_abandoned(found(settings)).await {
        Ok(backup) => {
            let message = format!("the backup at {} is of this cluster: revision {}", backup.location, backup.revision);
            Answer { backup: Some(Box::new(backup)), ..Answer::done(message) }
        }
        Err(answer) => answer,
    }
}

/// Sends the snapshot to a host.
pub(super) async fn sent(settings: &StagingSettings, host: &str) -> Answer {
    let Some(sending) = settings.send.get(host) else {
        return failed(format!("{host} is no host of this run"));
    };
    let sent = unless_abandoned(async { send(&settings.inputs, &secrets(settings)?, host, sending).await }).await;
    sent.map_or_else(|answer| answer, |bytes| Answer::done(format!("{host} has the snapshot: {bytes} bytes")))
}

/// Reports to the run that the backup is whole on all machines.
pub(super) async fn reported(settings: &StagingSettings, agreed: &Agreed) -> Answer {
    let found = match unless_abandoned(found(settings)).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    let location = &settings.inputs.location;
    match Events::of_this_run().staged(&staged(found, agreed)) {
        Ok(()) => Answer::done(format!("the backup at {location} lies ready")),
        Err(error) => failed(format!("failed to report the backup at {location}: {error}")),
    }
}

fn staged(found: FoundBackup, agreed: &Agreed) -> StagedBackup {
    StagedBackup {
        backup: found.backup,
        location: found.location,
        taken_at: found.taken_at,
        revision: found.revision,
        keys: found.keys,
        size: found.size,
        sha256: found.sha256,
        etcd_version: found.etcd_version,
        kubernetes_version: found.kubernetes_version,
        current_revision: agreed.current_revision,
        bump: agreed.bump,
        cluster_id: agreed.cluster_id.clone(),
    }
}

async fn found(settings: &StagingSettings) -> Result<FoundBackup, Answer> {
    inspect(&settings.inputs, &secrets(settings)?).await
}

fn secrets(settings: &StagingSettings) -> Result<Secrets, Answer> {
    Secrets::read(&settings.secrets).map_err(|error| failed(format!("failed to read the run's secrets: {error}")))
}

/// The result, unless nobody waits for it any more.
async fn unless_abandoned<T>(work: impl Future<Output = Result<T, Answer>>) -> Result<T, Answer> {
    tokio::select! {
        done = work => done,
        _ = abandoned() => {
            cleaned().await;
            Err(failed("staging was given up: the run was stopped".to_owned()))
        }
    }
}

fn failed(problem: String) -> Answer {
    Answer::refused(Reason::StagingFailed, problem)
}

#[cfg(test)]
mod tests {
    use super::Agreed;

    #[test]
    fn a_report_is_of_positive_numbers_and_a_hexadecimal_id() {
        let read = |text: &str| Agreed::parse(text).map(|agreed| (agreed.current_revision, agreed.bump));
        assert_eq!(read(r#"{"currentRevision": 7, "bump": 1000, "clusterID": "c0ffee"}"#), Ok((Some(7), 1000)));
        assert_eq!(read(r#"{"bump": 1, "clusterID": "1"}"#), Ok((None, 1)));
        for wrong in [
            "",
            "{}",
            r#"{"bump": 0, "clusterID": "1"}"#,
            r#"{"bump": 1, "clusterID": ""}"#,
            r#"{"bump": 1, "clusterID": "0x1"}"#,
            r#"{"bump": 1, "clusterID": "01234567890123456"}"#,
            r#"{"bump": 1, "clusterID": "1", "currentRevision": -1}"#,
            r#"{"bump": 1, "clusterID": "1", "sha256": "a"}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
