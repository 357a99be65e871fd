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

/// Whether all of these certificates are kept, still do and end late, and nothing is kept beside them: whether nothing
/// would be written.
pub fn is_complete(
    kept: &Data,
    pki: &Pki,
    rows: &[LeafRow],
    policy: RenewalPolicy,
    now: Timestamp,
) -> Result<bool, PkiError> {
    let ends_late = |end: Timestamp| !policy.is_due(end, now);
    for row in rows {
        if good_pair(kept, pki, row, ends_late)?.is_none() {
            return Ok(false);
        }
    }
    Ok(kept.len() == 2 * rows.len())
}

/// When the first of the certificates that are kept ends; none: there are none that can be read.
pub fn first_end(kept: &Data) -> Option<Timestamp> {
    let certificates = kept.iter().filter(|(name, _)| name.ends_with(".crt"));
    let end = |(name, pem): (&String, &ByteString)| {
        Certificate::parse(name, std::str::from_utf8(&pem.0).ok()?).ok()?.not_after().ok()
    };
    certificates.filter_map(end).min()
}

/// Every certificate wanted: those kept that still do, the others made. What is kept beside them goes.
pub(super) fn complete(
    kept: &Data,
    pki: &Pki,
    rows: &[LeafRow],
    policy: RenewalPolicy,
    now: Timestamp,
) -> Result<Data, PkiError> {
    let ends_late = |end: Timestamp| !policy.is_worth_a_new_one(end, now);
    let mut wanted = BTreeMap::new();
    for row in rows {
        let [certificate, key] = pair_names(&row.stem);
        let (pem, key_pem) = match good_pair(kept, pki, row, ends_late)? {
            Some((pem, key_pem)) => (pem.clone(), key_pem.clone()),
            None => {
                let made = pki.authority(row.signer)?.signer().issue(&row.leaf, policy.validity, now)?;
                (ByteString(made.certificate.into()), ByteString(made.key.into()))
            }
        };
        wanted.insert(certificate, pem);
        wanted.insert(key, key_pem);
    }
    Ok(wanted)
}

/// The certificate and the key of a row that are kept, where they still do.
fn good_pair<'a>(
    kept: &'a Data,
    pki: &Pki,
    row: &LeafRow,
    ends_late: impl Fn(Timestamp) -> bool,
) -> Result<Option<(&'a ByteString, &'a ByteString)>, PkiError> {
    let authority = pki.authority(row.signer)?.signer();
    let [certificate, key] = pair_names(&row.stem);
    let pair = kept.get(&certificate).zip(kept.get(&key));
    Ok(pair.filter(|(pem, key)| still_good(pem, key, authority, &row.leaf, ends_late)))
}

fn still_good(
    certificate: &ByteString,
    key: &ByteString,
    authority: &Authority,
    leaf: &Leaf,
    ends_late: impl Fn(Timestamp) -> bool,
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
        && certificate.not_after().is_ok_and(ends_late)
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
