//! One member of etcd: what it says of itself, and its snapshot.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use etcd_client::{AlarmAction, AlarmType, Client, GetOptions};
use futures::Stream;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::channel::{EtcdTls, connect, tls_failure};
use crate::error::{BackupError, EtcdFailure};
use crate::growth::outgrown;
use crate::text::{chain, sanitize};

/// Until there is a connection; and until a member answers, which it does not without a majority.
const ANSWER: Duration = Duration::from_secs(10);
/// A snapshot of which nothing comes for so long has ended.
const STALL: Duration = Duration::from_secs(60);

/// One member, connected.
pub struct Member {
    client: Client,
    name: String,
    url: String,
    prefix: Option<String>,
}

/// A member as it stands among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its client URL.
    pub url: String,
    /// ID of etcd's cluster, hexadecimal.
    pub cluster_id: String,
    /// It is the leader, which has more to do than the others.
    pub is_leader: bool,
    /// The index of what it applied last.
    pub applied: u64,
}

/// What a member says of itself, all of it at one time or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberState {
    /// etcd's version.
    pub version: String,
    /// Size of its database in bytes, about that of its snapshot.
    pub database_size: u64,
    /// ID of etcd's cluster, hexadecimal.
    pub cluster_id: String,
    /// The revision, read linearizably: the member has applied everything up to it.
    pub revision: i64,
    /// Keys at that revision, below the prefix where there is one.
    pub keys: i64,
}

impl Member {
    /// Connects to the member of a Host; the name is empty where no machine is known.
    pub async fn connect<C, F, S>(name: &str, url: &str, tls: &EtcdTls, stream: C) -> Result<Self, BackupError>
    where
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<S>> + Send,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let failed = |answer: String| BackupError::Etcd {
            failure: tls_failure(&answer).unwrap_or(EtcdFailure::Unreachable),
            action: "read anything",
            member: name.to_owned(),
            url: url.to_owned(),
            answer,
        };
        let channel = connect(url, tls, ANSWER, stream).await.map_err(failed)?;
        let client = Client::from_channel(etcd_client::Channel::Tonic(channel), None).await;
        let client = client.map_err(|error| failed(chain(&error)))?;
        Ok(Self { client, name: name.to_owned(), url: url.to_owned(), prefix: None })
    }

    /// The Host; empty where no machine is known.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its client URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// There must be keys below this, and those are counted.
    pub fn below(self, prefix: Option<&str>) -> Self {
        Self { prefix: prefix.map(str::to_owned), ..self }
    }

    /// Where it stands among the others, once it has shown that a backup can be taken from it.
    pub async fn candidate(mut self) -> Result<Candidate, BackupError> {
        const STATUS: &str = "read the status";
        let state = self.inspect().await?;
        // What is applied now, is all that was committed before it was read.
        let status = match timeout(ANSWER, self.client.status()).await {
            Ok(status) => status.map_err(|error| self.explained(STATUS, &error))?,
            Err(_) => return Err(self.silent(EtcdFailure::Unreachable, STATUS, ANSWER)),
        };
        let own = status.header().map_or(0, etcd_client::ResponseHeader::member_id);
        Ok(Candidate {
            url: self.url,
            cluster_id: state.cluster_id,
            is_leader: status.leader() == own,
            applied: status.raft_applied_index(),
        })
    }

    /// The members of etcd, as JSON: who restores it by hand gives each its name and its peer URLs again.
    pub async fn members(&mut self) -> Result<serde_json::Value, BackupError> {
        const MEMBERS: &str = "list the members";
        let listed = match timeout(ANSWER, self.client.member_list()).await {
            Ok(listed) => listed.map_err(|error| self.explained(MEMBERS, &error))?,
            Err(_) => return Err(self.silent(EtcdFailure::NoQuorum, MEMBERS, ANSWER)),
        };
        let member = |member: &etcd_client::Member| {
            json!({
                "id": format!("{:x}", member.id()), "name": member.name(), "peerURLs": member.peer_urls(),
                "clientURLs": member.client_urls(), "isLearner": member.is_learner()
            })
        };
        Ok(listed.members().iter().map(member).collect())
    }

    /// Asks a member whether a backup can be taken from it, and for its state. Errors: it is a learner, it is corrupt,
    /// or it is not in contact with a majority, which it says or shows by not answering for 10 s. A member that is out
    /// of space has nothing wrong with what it holds.
    pub async fn inspect(&mut self) -> Result<MemberState, BackupError> {
        const STATUS: &str = "read the status";
        let status = match timeout(ANSWER, self.client.status()).await {
            Ok(status) => status.map_err(|error| self.explained(STATUS, &error))?,
            Err(_) => return Err(self.silent(EtcdFailure::Unreachable, STATUS, ANSWER)),
        };
        if status.is_learner() {
            return Err(self.failed(EtcdFailure::Unsuitable, STATUS, "it is a learner".to_owned()));
        }
        let id = status.header().map_or(0, etcd_client::ResponseHeader::member_id);
        const REVISION: &str = "read the revision";
        let (revision, cluster, keys) = match timeout(ANSWER, self.read_linearizably(id)).await {
            Ok(read) => read?,
            Err(_) => return Err(self.silent(EtcdFailure::NoQuorum, REVISION, ANSWER)),
        };
        Ok(MemberState {
            version: status.version().to_owned(),
            database_size: u64::try_from(status.db_size()).unwrap_or(0),
            cluster_id: format!("{cluster:x}"),
            revision,
            keys,
        })
    }

    /// Alarms, then revision, cluster and number of keys. Both go through a majority of the members.
    async fn read_linearizably(&mut self, id: u64) -> Result<(i64, u64, i64), BackupError> {
        const ALARMS: &str = "read the alarms";
        let alarms = self.client.alarm(AlarmAction::Get, AlarmType::None, None).await;
        let alarms = alarms.map_err(|error| self.explained(ALARMS, &error))?;
        // An alarm of member 0 says that members differ, and not which of them is right.
        let is_of_it = |member: u64| member == id || member == 0;
        if alarms.alarms().iter().any(|alarm| alarm.alarm() == AlarmType::Corrupt && is_of_it(alarm.member_id())) {
            return Err(self.failed(EtcdFailure::Unsuitable, ALARMS, "it has the alarm CORRUPT".to_owned()));
        }
        let (key, options) = match &self.prefix {
            // With the slash: `/registry2` is another one.
            Some(prefix) => (format!("{prefix}/"), GetOptions::new().with_prefix().with_count_only()),
            None => ("\0".to_owned(), GetOptions::new().with_all_keys().with_count_only()),
        };
        let read = self.client.get(key, Some(options)).await;
        let read = read.map_err(|error| self.explained("read the revision", &error))?;
        if let Some(prefix) = self.prefix.as_ref().filter(|_| read.count() == 0) {
            let answer = format!("it has no key below {prefix}");
            return Err(self.failed(EtcdFailure::Empty, "read the revision", answer));
        }
        let header = read.header();
        let revision = header.map_or(0, etcd_client::ResponseHeader::revision);
        Ok((revision, header.map_or(0, etcd_client::ResponseHeader::cluster_id), read.count()))
    }

    /// Returns once the database has grown by too much since it had this size.
    pub fn outgrown(&self, began: u64) -> impl Future<Output = BackupError> + Send + use<> {
        let (client, name, url) = (self.client.clone(), self.name.clone(), self.url.clone());
        async move {
            let answer = outgrown(client, began).await;
            let (failure, action) = (EtcdFailure::Grown, "read the snapshot");
            BackupError::Etcd { failure, action, member: name, url, answer }
        }
    }

    /// Begins a snapshot, and returns its bytes as they come. An error ends it, also that nothing came for 60 s.
    pub async fn snapshot(self) -> Result<impl Stream<Item = Result<Bytes, BackupError>> + Send, BackupError> {
        const BEGIN: &str = "begin a snapshot";
        const READ: &str = "read the snapshot";
        let begun = match timeout(STALL, self.client.maintenance_client().snapshot()).await {
            Ok(begun) => begun.map_err(|error| self.explained(BEGIN, &error))?,
            Err(_) => return Err(self.silent(EtcdFailure::Interrupted, BEGIN, STALL)),
        };
        Ok(futures::stream::try_unfold((begun, self), async |(mut stream, member)| {
            match timeout(STALL, stream.message()).await {
                Ok(Ok(Some(message))) => Ok(Some((Bytes::copy_from_slice(message.blob()), (stream, member)))),
                Ok(Ok(None)) => Ok(None),
                Ok(Err(error)) => Err(member.failed(EtcdFailure::Interrupted, READ, explanation(&error))),
                Err(_) => Err(member.silent(EtcdFailure::Interrupted, READ, STALL)),
            }
        }))
    }

    /// An error of this member.
    pub fn failed(&self, failure: EtcdFailure, action: &'static str, answer: String) -> BackupError {
        let (member, url) = (self.name.clone(), self.url.clone());
        let failure = match failure {
            EtcdFailure::Unreachable => tls_failure(&answer).unwrap_or(failure),
            _ => failure,
        };
        BackupError::Etcd { failure, action, member, url, answer }
    }

    fn silent(&self, failure: EtcdFailure, action: &'static str, time: Duration) -> BackupError {
        self.failed(failure, action, format!("no answer within {} s", time.as_secs()))
    }

    fn explained(&self, action: &'static str, error: &etcd_client::Error) -> BackupError {
        self.failed(kind(error), action, explanation(error))
    }
}

/// etcd says why only in words, which are part of its API (`rpctypes`).
fn kind(error: &etcd_client::Error) -> EtcdFailure {
    let etcd_client::Error::GRpcStatus(status) = error else { return EtcdFailure::Unreachable };
    let Some(words) = status.message().strip_prefix("etcdserver: ") else { return EtcdFailure::Unreachable };
    let no_quorum = ["request timed out", "no leader", "leader changed", "not healthy", "unhealthy cluster"];
    let denied = ["permission denied", "user name", "invalid auth token", "authentication failed", "auth: "];
    match words {
        _ if no_quorum.iter().any(|known| words.starts_with(known)) => EtcdFailure::NoQuorum,
        "server stopped" | "too many requests" => EtcdFailure::Unreachable,
        _ if denied.iter().any(|known| words.starts_with(known)) => EtcdFailure::Denied,
        _ => EtcdFailure::Unsuitable,
    }
}

/// What came back, in one line: etcd's own words, or why there were none.
fn explanation(error: &etcd_client::Error) -> String {
    let etcd_client::Error::GRpcStatus(status) = error else { return chain(error) };
    let Some(cause) = status.source() else { return sanitize(status.message()) };
    let cause = chain(cause);
    // The error that gRPC gives for it has no cause: only its text says what it was.
    let refused = if cause.contains("received fatal alert") { ": it refuses the client's certificate" } else { "" };
    format!("{cause}{refused}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_without_a_majority_is_told_from_one_that_is_away_and_from_one_that_refuses() {
        for (text, expected) in [
            ("etcdserver: request timed out", EtcdFailure::NoQuorum),
            ("etcdserver: request timed out, possibly due to previous leader failure", EtcdFailure::NoQuorum),
            ("etcdserver: no leader", EtcdFailure::NoQuorum),
            ("etcdserver: rpc not supported for learner", EtcdFailure::Unsuitable),
            ("etcdserver: corrupt cluster", EtcdFailure::Unsuitable),
            ("etcdserver: permission denied", EtcdFailure::Denied),
            ("etcdserver: user name is empty", EtcdFailure::Denied),
            ("transport error", EtcdFailure::Unreachable),
        ] {
            assert_eq!(kind(&etcd_client::Error::GRpcStatus(tonic::Status::unavailable(text))), expected, "{text}");
        }
    }
}
