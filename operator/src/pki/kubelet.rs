//! Client certificates of kubelets, for machines whose own are from an authority that is being replaced. From then on
//! the kubelet renews it by itself.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;

use super::authority::{Authority, Leaf};
use super::error::PkiError;
use super::material::Data;

/// As long as those that a cluster gives to its kubelets.
const VALIDITY: SignedDuration = SignedDuration::from_hours(365 * 24);

/// A pair for each Host, whose Node has its name: `kubelet.<host>.crt` and `.key`.
pub fn files<'a>(
    authority: &Authority,
    hosts: impl IntoIterator<Item = &'a String>,
    now: Timestamp,
) -> Result<Data, PkiError> {
    let mut data = Data::new();
    for host in hosts {
        let leaf =
            Leaf { common_name: format!("system:node:{host}"), organization: Some("system:nodes"), ..Leaf::default() };
        let made = authority.issue(&leaf, VALIDITY, now)?;
        data.insert(format!("kubelet.{host}.crt"), ByteString(made.certificate.into()));
        data.insert(format!("kubelet.{host}.key"), ByteString(made.key.into()));
    }
    Ok(data)
}

/// A client without any rights of an authority that does not sign yet: whoever refuses its certificate does not trust
/// that one.
pub fn next_client(next: &Authority, now: Timestamp) -> Result<Data, PkiError> {
    let leaf = Leaf { common_name: "clusterwright:next-authority".into(), ..Leaf::default() };
    let made = next.issue(&leaf, SignedDuration::from_hours(24), now)?;
    let files = [("pki.next-client.crt", made.certificate), ("pki.next-client.key", made.key)];
    Ok(files.map(|(name, value)| (name.to_owned(), ByteString(value.into()))).into())
}
