//! What keeps an etcd from being defragmented before somebody acts.

use std::cmp::Ordering;

use crds::Reason;
use crds::cluster_deployment::EtcdStatus;

use super::super::Finding;

/// Before it, a defragmentation and a snapshot from the leader could damage a database between them.
const OLDEST: [u64; 3] = [3, 6, 5];

/// Why none is made before somebody acts.
pub(crate) fn refused(status: &EtcdStatus, finding: Option<&Finding>) -> Option<Finding> {
    if let Some(corrupt) = finding.filter(|finding| finding.reason == Reason::EtcdCorrupt) {
        return Some(corrupt.clone());
    }
    let is_old = |version: &str| compare(version, OLDEST) == Ordering::Less;
    let member = status.members.iter().find_map(|member| {
        let version = member.version.as_deref().filter(|version| is_old(version))?;
        Some((&member.host, version))
    });
    member.map(|(host, version)| {
        let message = format!(
            "etcd of {host} is {version}, which a defragmentation may damage before 3.6.5: give the machines a newer one"
        );
        Finding { reason: Reason::EtcdTooOld, message }
    })
}

/// Compares the release that a version is of, or leads to; a part that is no number counts as 0.
fn compare(version: &str, with: [u64; 3]) -> Ordering {
    let release = version.split('-').next().unwrap_or_default();
    let mut parts = release.split('.').map(|part| part.parse::<u64>().unwrap_or_default());
    let release = [(); 3].map(|()| parts.next().unwrap_or_default());
    release.cmp(&with)
}

#[cfg(test)]
mod tests {
    use super::{OLDEST, compare};
    use std::cmp::Ordering::{self, Equal, Greater, Less};

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let check = |version: &str, expected: Ordering| assert_eq!(compare(version, OLDEST), expected, "{version}");
        check("3.6.5", Equal);
        check("3.6.16", Greater);
        check("3.10.0", Greater);
        check("3.6.4", Less);
        check("3.5.26", Less);
        check("3.6.5-rc.0", Equal);
        check("", Less);
    }
}
