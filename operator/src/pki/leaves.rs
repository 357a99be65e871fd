//! Leaf certificates that are kept in a Secret, so that a second run of a step brings the same files and changes
//! nothing: one is made anew when it is missing, does not fit, or ends soon.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use plan::certificates::RenewalPolicy;
use plan::rotation::Subject;
use rcgen::KeyPair;

use super::authority::{Authority, Leaf};
use super::certificate::Certificate;
use super::material::{Data, Pki};
use super::{PkiError, PkiOwner};
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::execute;

/// A leaf certificate that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafRow {
    /// What the names of its files begin with: `.crt` and `.key` follow.
    pub stem: String,
    /// The authority that signs it.
    pub signer: Subject,
    /// What it says.
    pub leaf: Leaf,
}

/// The names of the files of a certificate and its key.
pub fn pair_names(stem: &str) -> [String; 2] {
    [format!("{stem}.crt"), format!("{stem}.key")]
}

/// These certificates, kept or made, and no others, in the Secret of this name; it is written only when something
/// changed. `what` messages call them: `etcd certificates`.
pub async fn ensure(
    ctx: &Context,
    owner: &PkiOwner,
    (secret, what): (&str, &str),
    pki: &Pki,
    rows: &[LeafRow],
    now: Timestamp,
) -> Result<Data, Error> {
    let found = owner.find(ctx, secret).await?;
    if let Some(found) = &found {
        owner.check(found).doing(|| format!("use Secret {secret}"))?;
    }
    let kept = found.and_then(|secret| secret.data).unwrap_or_default();
    let wanted =
        complete(&kept, pki, rows, owner.renewal, now).doing(|| format!("make the {what} of {}", owner.title()))?;
    if wanted != kept {
        execute::apply(ctx, &owner.secret(secret, wanted.clone())).await?;
    }
    Ok(wanted)
}

/// Every certificate wanted: those kept that still do, the others made. What is kept beside them goes.
pub(super) fn complete(
    kept: &Data,
    pki: &Pki,
    rows: &[LeafRow],
    policy: RenewalPolicy,
    now: Timestamp,
) -> Result<Data, PkiError> {
    let ends_late =
        |certificate: &Certificate| certificate.not_after().is_ok_and(|end| !policy.is_worth_a_new_one(end, now));
    let mut wanted = BTreeMap::new();
    for row in rows {
        let authority = pki.authority(row.signer)?.signer();
        let [certificate, key] = pair_names(&row.stem);
        match (kept.get(&certificate), kept.get(&key)) {
            (Some(old), Some(old_key)) if still_good(old, old_key, authority, &row.leaf, ends_late) => {
                wanted.insert(certificate, old.clone());
                wanted.insert(key, old_key.clone());
            }
            _ => {
                let made = authority.issue(&row.leaf, policy.validity, now)?;
                wanted.insert(certificate, ByteString(made.certificate.into()));
                wanted.insert(key, ByteString(made.key.into()));
            }
        }
    }
    Ok(wanted)
}

fn still_good(
    certificate: &ByteString,
    key: &ByteString,
    authority: &Authority,
    leaf: &Leaf,
    ends_late: impl Fn(&Certificate) -> bool,
) -> bool {
    let parse = |pem: &str| Certificate::parse("a leaf certificate", pem);
    let (Ok(pem), Ok(key)) = (std::str::from_utf8(&certificate.0), std::str::from_utf8(&key.0)) else {
        return false;
    };
    let (Ok(certificate), Ok(authority), Ok(key)) =
        (parse(pem), parse(authority.certificate()), KeyPair::from_pem(key))
    else {
        return false;
    };
    let names = (
        leaf.dns_names.iter().cloned().collect::<BTreeSet<_>>(),
        leaf.addresses.iter().copied().collect::<BTreeSet<_>>(),
    );
    certificate.is_signed_by(&authority)
        && certificate.has_key(&key)
        && certificate.alternative_names().is_ok_and(|found| found == names)
        && ends_late(&certificate)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::{Span, Timestamp};
    use plan::encryption::Scheme;
    use plan::rotation::Subject;

    use super::{LeafRow, complete, ensure};
    use crate::fake_api::FakeApi;
    use crate::pki::authority::Leaf;
    use crate::pki::certificate::Certificate;
    use crate::pki::fixtures::{TWO, plane, policy};
    use crate::pki::{Pki, get, make};

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn row(stem: &str, signer: Subject, name: &str) -> LeafRow {
        let leaf = Leaf { common_name: stem.into(), dns_names: vec![name.into()], serves: true, ..Leaf::default() };
        LeafRow { stem: stem.into(), signer, leaf }
    }

    fn rows() -> [LeafRow; 2] {
        [row("webhook", Subject::Ca, "webhook.plane.svc"), row("store", Subject::EtcdCa, "store-0")]
    }

    #[test]
    fn each_is_signed_by_the_authority_of_its_row_and_kept_until_the_row_or_the_time_asks_for_another() {
        let pki = Pki::generate(TWO, &Scheme::default(), now()).unwrap();
        let first = complete(&BTreeMap::new(), &pki, &rows(), policy(), now()).unwrap();
        assert_eq!(first.keys().collect::<Vec<_>>(), ["store.crt", "store.key", "webhook.crt", "webhook.key"]);
        let parse = |name: &str| Certificate::parse(name, std::str::from_utf8(&first[name].0).unwrap()).unwrap();
        let signer =
            |subject| Certificate::parse("ca", pki.authority(subject).unwrap().signer().certificate()).unwrap();
        for (name, by, not_by) in
            [("webhook.crt", Subject::Ca, Subject::EtcdCa), ("store.crt", Subject::EtcdCa, Subject::Ca)]
        {
            assert!(parse(name).is_signed_by(&signer(by)) && !parse(name).is_signed_by(&signer(not_by)), "{name}");
        }
        assert_eq!(complete(&first, &pki, &rows(), policy(), now()).unwrap(), first);
        let later = now() + Span::new().hours(24 * 220);
        let renewed = complete(&first, &pki, &rows(), policy(), later).unwrap();
        assert!(renewed.iter().all(|(name, value)| first[name] != *value));

        let [webhook, mut store] = rows();
        store.leaf.dns_names = vec!["store-1".into()];
        let moved = complete(&first, &pki, &[webhook, store], policy(), now()).unwrap();
        assert!(moved["webhook.crt"] == first["webhook.crt"] && moved["store.crt"] != first["store.crt"]);
        let without = complete(&first, &pki, &rows()[..1], policy(), now()).unwrap();
        assert_eq!(without.len(), 2, "what nobody wants any more goes");
    }

    #[test]
    fn a_signer_that_the_table_does_not_have_is_named() {
        let pki = Pki::generate(TWO, &Scheme::default(), now()).unwrap();
        let rows = [row("proxy", Subject::FrontProxyCa, "proxy")];
        let refused = complete(&BTreeMap::new(), &pki, &rows, policy(), now()).unwrap_err();
        assert_eq!(refused.to_string(), "this PKI has no front-proxy-ca");
    }

    #[tokio::test]
    async fn they_are_in_a_secret_of_their_owner_which_is_written_once() {
        let api = FakeApi::default();
        let (ctx, owner) = (api.context(), plane("uid-plane"));
        make(&ctx, &owner, &BTreeMap::new(), now()).await.unwrap();
        let pki = get(&ctx, &owner).await.unwrap();
        let named = ("plane-certificates", "certificates");
        let made = ensure(&ctx, &owner, named, &pki, &rows(), now()).await.unwrap();
        let written = api.get("secrets/fleet/plane-certificates").unwrap();
        assert_eq!(written["metadata"]["ownerReferences"][0]["uid"], "uid-plane");
        assert_eq!(written["data"].as_object().unwrap().len(), 4);
        assert_eq!(ensure(&ctx, &owner, named, &pki, &rows(), now()).await.unwrap(), made);
        assert_eq!(api.get("secrets/fleet/plane-certificates").unwrap(), written);
        let refused = ensure(&ctx, &plane("uid-other"), named, &pki, &rows(), now()).await.unwrap_err();
        assert!(crate::error::chain(&refused).contains("belongs to another object"));
    }
}
