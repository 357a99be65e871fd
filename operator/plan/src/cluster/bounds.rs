//! What the schema takes: a kubeconfig and an API server may say more, and one text that is too long would keep the
//! whole status from being written.

use crds::ClusterStatus;

const LONGEST_ENDPOINT: usize = 300;
const LONGEST_VERSION: usize = 64;
const LONGEST_UID: usize = 64;
const LONGEST_NAME: usize = 63;
const LONGEST_MESSAGE: usize = 512;
/// Components, and certificates.
const MOST: usize = 32;

/// Cuts what is observed to what the schema takes; messages are cut where they are made.
pub(super) fn keep(status: &mut ClusterStatus) {
    let cut_all = |text: &mut Option<String>, longest| *text = text.take().map(|text| cut(longest, text));
    cut_all(&mut status.endpoint, LONGEST_ENDPOINT);
    cut_all(&mut status.version, LONGEST_VERSION);
    cut_all(&mut status.cluster_uid, LONGEST_UID);
    status.components.truncate(MOST);
    for component in &mut status.components {
        component.name = cut(LONGEST_NAME, std::mem::take(&mut component.name));
        cut_all(&mut component.message, LONGEST_MESSAGE);
    }
    status.certificates.truncate(MOST);
    for certificate in &mut status.certificates {
        certificate.name = cut(LONGEST_NAME, std::mem::take(&mut certificate.name));
    }
}

/// The identity of a cluster as a status keeps it.
pub(super) fn uid(text: &str) -> String {
    cut(LONGEST_UID, text.to_owned())
}

fn cut(longest: usize, text: String) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}
