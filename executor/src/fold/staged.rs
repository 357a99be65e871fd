//! The backup that a run brings to the machines, as its status has it.

use std::collections::BTreeMap;

use crds::etcd_restore::StagedBackup;

use super::backup::size;
use crate::sanitize::clean;

/// How far a backup has come.
#[derive(Clone, Debug)]
pub(super) struct Staging {
    location: String,
    /// Bytes that each host has.
    sent: BTreeMap<String, i64>,
    staged: Option<StagedBackup>,
}

impl Staging {
    pub(super) fn new(location: &str) -> Self {
        Self { location: location.to_owned(), sent: BTreeMap::new(), staged: None }
    }

    /// A host has so many bytes; returns how many all have.
    pub(super) fn sent(&mut self, host: &str, bytes: i64) -> i64 {
        self.sent.insert(host.to_owned(), bytes.max(0));
        self.sent.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// It lies ready; another backup is another run's.
    pub(super) fn take(&mut self, staged: &StagedBackup) {
        if staged.location == self.location {
            self.staged = Some(cleaned(staged));
        }
    }

    /// It is staged anew.
    pub(super) fn forget(&mut self) {
        self.staged = None;
    }

    pub(super) fn staged(&self) -> Option<&StagedBackup> {
        self.staged.as_ref()
    }
}

/// In the lengths that the schema allows: who writes into the storage says what is in it.
fn cleaned(staged: &StagedBackup) -> StagedBackup {
    StagedBackup {
        backup: clean(&staged.backup, 63),
        location: clean(&staged.location, 512),
        sha256: clean(&staged.sha256, 64),
        etcd_version: clean(&staged.etcd_version, 64),
        cluster_id: clean(&staged.cluster_id, 16),
        ..staged.clone()
    }
}

/// What lies ready: `backup paris/7f1c/x staged on 3 hosts: 3.1 MiB at revision 1234`.
pub(super) fn sentence(staged: &StagedBackup, hosts: usize) -> String {
    let hosts = if hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") };
    format!("backup {} staged on {hosts}: {} at revision {}", staged.location, size(staged.size), staged.revision)
}
