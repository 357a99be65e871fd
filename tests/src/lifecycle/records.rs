//! A client that makes objects all the time, and remembers at which revision each was acknowledged: what must be there
//! after a restore, and what must not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use tokio::task::JoinHandle;

use crate::client::client_of;

/// Between two objects.
const PAUSE: Duration = Duration::from_millis(150);
/// An answer that has not come by then is not waited for.
const PATIENCE: Duration = Duration::from_millis(1500);
const PREFIX: &str = "record-";
const PAGE: u32 = 500;

/// What a client knows of its objects, by their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Those that were acknowledged, and the revision of each.
    pub acknowledged: BTreeMap<u64, i64>,
    /// Those that may be there or not.
    pub unknown: BTreeSet<u64>,
    /// Those that were there although they were made once.
    pub doubled: BTreeSet<u64>,
}

impl Records {
    /// What is there of it in data that ends with this revision.
    pub fn up_to(&self, revision: i64) -> Self {
        let acknowledged = self.acknowledged.iter().filter(|(_, at)| **at <= revision);
        Self { acknowledged: acknowledged.map(|(number, at)| (*number, *at)).collect(), ..self.clone() }
    }

    /// Beside what was restored, what was acknowledged from this revision on.
    pub fn and_from(mut self, revision: i64, later: &Self) -> Self {
        let new = later.acknowledged.iter().filter(|(_, at)| **at >= revision);
        self.acknowledged.extend(new.map(|(number, at)| (*number, *at)));
        self.unknown.extend(&later.unknown);
        self.doubled.extend(&later.doubled);
        self
    }

    /// Whether exactly this is there.
    pub fn check(&self, found: &BTreeMap<u64, i64>) -> Result<()> {
        ensure!(self.doubled.is_empty(), "made twice: {:?}", self.doubled);
        let missing: Vec<u64> =
            self.acknowledged.keys().filter(|number| !found.contains_key(number)).copied().collect();
        ensure!(missing.is_empty(), "acknowledged and not there: {missing:?}");
        let moved = self.acknowledged.iter().filter(|(number, at)| found.get(number) != Some(at));
        let moved: Vec<u64> = moved.map(|(number, _)| *number).collect();
        ensure!(moved.is_empty(), "there with another revision: {moved:?}");
        let known = |number: &u64| self.acknowledged.contains_key(number) || self.unknown.contains(number);
        let stray: Vec<u64> = found.keys().filter(|number| !known(number)).copied().collect();
        ensure!(stray.is_empty(), "there although it must not be: {stray:?}");
        Ok(())
    }
}

/// Makes objects until it is dropped.
pub struct Recorder {
    records: Arc<Mutex<Records>>,
    task: JoinHandle<()>,
}

impl Recorder {
    /// Goes on from these records.
    pub fn start(kubeconfig: String, records: Records) -> Self {
        let known = records.acknowledged.keys().chain(&records.unknown).max();
        let next = known.map_or(0, |last| last + 1);
        let records = Arc::new(Mutex::new(records));
        Self { task: tokio::spawn(record(kubeconfig, records.clone(), next)), records }
    }

    /// As they are now.
    pub fn records(&self) -> Records {
        lock(&self.records).clone()
    }

    /// Makes no more of them. As they are then: whether the last one came to be is not known.
    pub async fn end(mut self) -> Records {
        self.task.abort();
        // It was told to end.
        let _ = (&mut self.task).await;
        self.records()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(records: &Mutex<Records>) -> MutexGuard<'_, Records> {
    records.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn record(kubeconfig: String, records: Arc<Mutex<Records>>, mut number: u64) {
    let mut client: Option<Client> = None;
    loop {
        if client.is_none() {
            client = client_of(&kubeconfig).await.ok();
        }
        if let Some(with) = client.clone() {
            let api: Api<ConfigMap> = Api::namespaced(with, "default");
            let mut object = ConfigMap::default();
            object.metadata.name = Some(format!("{PREFIX}{number}"));
            // Known before it is sent: it may come to be although nobody hears of it.
            lock(&records).unknown.insert(number);
            match tokio::time::timeout(PATIENCE, api.create(&PostParams::default(), &object)).await {
                Ok(Ok(made)) => {
                    if let Some(at) = made.resource_version().and_then(|version| version.parse().ok()) {
                        let mut records = lock(&records);
                        records.unknown.remove(&number);
                        records.acknowledged.insert(number, at);
                    }
                }
                Ok(Err(kube::Error::Api(refused))) if refused.code == 409 => {
                    lock(&records).doubled.insert(number);
                }
                Ok(Err(_)) | Err(_) => client = None,
            }
            number += 1;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What is there, with the revision of each.
pub async fn found(client: &Client) -> Result<BTreeMap<u64, i64>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut found = BTreeMap::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = api.list_metadata(&page).await?;
        for object in &list.items {
            let number: Option<u64> = object.name_any().strip_prefix(PREFIX).and_then(|number| number.parse().ok());
            let at: Option<i64> = object.resource_version().and_then(|version| version.parse().ok());
            found.extend(number.zip(at));
        }
        match list.metadata.continue_ {
            Some(token) if !token.is_empty() => page = page.continue_token(&token),
            _ => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Records;

    fn records(acknowledged: &[(u64, i64)], unknown: &[u64]) -> Records {
        Records {
            acknowledged: acknowledged.iter().copied().collect(),
            unknown: unknown.iter().copied().collect(),
            ..Records::default()
        }
    }

    #[test]
    fn what_was_acknowledged_after_a_backup_is_not_in_it() {
        let all = records(&[(0, 10), (1, 20), (2, 30)], &[3]);
        assert_eq!(all.up_to(20), records(&[(0, 10), (1, 20)], &[3]));
    }

    #[test]
    fn beside_what_is_restored_there_is_what_came_after_the_restore() {
        let all = records(&[(0, 10), (1, 20), (2, 30), (4, 1_000)], &[3]);
        assert_eq!(all.up_to(20).and_from(1_000, &all), records(&[(0, 10), (1, 20), (4, 1_000)], &[3]));
    }

    #[test]
    fn exactly_what_must_be_there_is() {
        let wanted = records(&[(0, 10), (1, 20)], &[3]);
        for found in [vec![(0, 10), (1, 20)], vec![(0, 10), (1, 20), (3, 25)]] {
            wanted.check(&found.into_iter().collect()).unwrap();
        }
        for (found, why) in [
            (vec![(0, 10)], "not there"),
            (vec![(0, 10), (1, 21)], "another revision"),
            (vec![(0, 10), (1, 20), (2, 30)], "must not be"),
        ] {
            let error = wanted.check(&found.into_iter().collect()).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
        let doubled = Records { doubled: [1].into(), ..wanted };
        assert!(doubled.check(&[(0, 10), (1, 20)].into()).unwrap_err().to_string().contains("twice"));
    }
}
