//! Connects to the bastions before Ansible starts: the hosts behind one then share its connection from the
//! first moment, and when it does not answer, ssh says here why. Behind a proxy command it would not.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::timeout;
use tracing::warn;

use crate::ansible::Ansible;
use crate::children;
use crate::ssh::{Bastion, Ssh};
use crate::unreachable::{self, Unreachable};
use crate::workdir::Workdir;

/// More than ssh's own limits for the connection, which it tries twice.
const PATIENCE: Duration = Duration::from_secs(45);

/// Why hosts cannot be reached: by the first bastion on the way that does not let us in.
pub async fn open(ansible: &Ansible, workdir: &Workdir, ssh: &Ssh) -> BTreeMap<String, Unreachable> {
    let opened = ssh.bastions.iter().map(|(name, bastion)| open_one(ansible, workdir, name, bastion));
    let mut failed: Vec<_> = futures::future::join_all(opened).await.into_iter().flatten().collect();
    // The nearest last: its word counts.
    failed.sort_by_key(|(bastion, _)| std::cmp::Reverse(bastion.depth));
    let mut reasons = BTreeMap::new();
    for (bastion, why) in failed {
        warn!(
            address = bastion.address,
            reason = %why.reason,
            message = why.message,
            "a bastion lets nobody through"
        );
        for host in &bastion.hosts {
            let message = format!("bastion {}: {}", bastion.address, why.message);
            reasons.insert(host.clone(), Unreachable { reason: why.reason, message });
        }
    }
    reasons
}

async fn open_one<'a>(
    ansible: &Ansible,
    workdir: &Workdir,
    name: &str,
    bastion: &'a Bastion,
) -> Option<(&'a Bastion, Unreachable)> {
    let log = workdir.path().join("tmp").join(format!("{name}.log"));
    let said = match children::spawn(&mut ansible.bastion(workdir, bastion, &log)) {
        Err(error) => error.to_string(),
        Ok(mut waited) => match timeout(PATIENCE, waited.child().wait()).await {
            Ok(Ok(status)) if status.success() => return None,
            Ok(_) => String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned(),
            Err(_) => "Connection timed out".to_owned(),
        },
    };
    Some((bastion, unreachable::explain(&said)))
}
