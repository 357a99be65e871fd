//! Which of several endpoints of an etcd is read: the one that a backup disturbs least.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use futures::future::join_all;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::channel::EtcdTls;
use crate::error::BackupError;
use crate::member::{Candidate, Member};

/// The endpoint whose member is read: of a voter that answered a linearizable read and is not corrupt; a follower
/// before the leader, then the one that applied most. `dial` connects to an endpoint's URL. Errors: none can be read,
/// and what each lacks; or they are not of one etcd.
pub async fn choose<D, F, S>(
    endpoints: &[String],
    prefix: Option<&str>,
    tls: &EtcdTls,
    dial: D,
) -> Result<String, BackupError>
where
    D: Fn(String) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let asked = endpoints.iter().map(async |url| {
        let (dial, to) = (dial.clone(), url.clone());
        Member::connect("", url, tls, move || dial(to.clone())).await?.below(prefix).candidate().await
    });
    chosen(join_all(asked).await)
}

/// The one that is read, by what each answered.
fn chosen(answers: Vec<Result<Candidate, BackupError>>) -> Result<String, BackupError> {
    let (mut candidates, mut errors) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => errors.push(error),
        }
    }
    let mut clusters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for candidate in &candidates {
        clusters.entry(&candidate.cluster_id).or_default().push(&candidate.url);
    }
    if clusters.len() > 1 {
        let found = clusters.iter().map(|(cluster, urls)| format!("{}: {cluster}", urls.join(", ")));
        return Err(BackupError::Split { found: found.collect::<Vec<_>>().join("; ") });
    }
    let best = candidates.into_iter().min_by_key(|one| (one.is_leader, Reverse(one.applied), one.url.clone()));
    best.map(|candidate| candidate.url).ok_or_else(|| nobody(errors))
}

/// One that failed alone says so itself; several have a reason where it is the same.
fn nobody(mut errors: Vec<BackupError>) -> BackupError {
    if errors.len() == 1 {
        return errors.remove(0);
    }
    let reasons: Vec<&'static str> = errors.iter().map(BackupError::reason).collect();
    let reason = match reasons.as_slice() {
        [first, others @ ..] if others.iter().all(|other| other == first) => first,
        _ => "EtcdNoMember",
    };
    let retriable = errors.iter().any(BackupError::retriable);
    let problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
    BackupError::NoMember { reason, retriable, problems: problems.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::EtcdFailure;

    fn member(port: u16, is_leader: bool, applied: u64) -> Result<Candidate, BackupError> {
        Ok(Candidate { url: url(port), cluster_id: "c".to_owned(), is_leader, applied })
    }

    fn url(port: u16) -> String {
        format!("https://10.0.0.5:{port}")
    }

    fn failed(port: u16, failure: EtcdFailure) -> Result<Candidate, BackupError> {
        let (url, answer) = (url(port), "no".to_owned());
        Err(BackupError::Etcd { failure, action: "read the status", member: String::new(), url, answer })
    }

    #[test]
    fn a_follower_that_applied_most_is_read_and_the_leader_where_it_is_alone() {
        let away = || failed(9, EtcdFailure::Unreachable);
        let followers = vec![member(1, true, 9), member(2, false, 7), member(3, false, 8), away()];
        assert_eq!(chosen(followers).unwrap(), url(3));
        assert_eq!(chosen(vec![member(2, false, 7), member(1, false, 7)]).unwrap(), url(1));
        assert_eq!(chosen(vec![away(), member(1, true, 9)]).unwrap(), url(1));
    }

    #[test]
    fn endpoints_of_two_etcds_are_refused_and_named() {
        let other = Candidate { url: url(2), cluster_id: "d".to_owned(), is_leader: true, applied: 1 };
        let refused = chosen(vec![member(1, true, 9), Ok(other)]).unwrap_err();
        assert_eq!((refused.reason(), refused.retriable()), ("EtcdSplit", false));
        let words = refused.to_string();
        assert!(words.contains("https://10.0.0.5:1: c") && words.contains("https://10.0.0.5:2: d"), "{words}");
    }

    #[test]
    fn where_none_can_be_read_each_says_what_it_lacks() {
        let check = |answers, reason: &str, retriable: bool| {
            let refused = chosen(answers).unwrap_err();
            assert_eq!((refused.reason(), refused.retriable()), (reason, retriable), "{refused}");
            assert!(refused.to_string().contains(":1: no"), "{refused}");
        };
        check(vec![failed(1, EtcdFailure::Untrusted)], "EtcdCertificateInvalid", false);
        let both = |second| vec![failed(1, EtcdFailure::Unreachable), failed(2, second)];
        check(both(EtcdFailure::Unreachable), "EtcdUnreachable", true);
        check(both(EtcdFailure::Unsuitable), "EtcdNoMember", true);
    }
}
