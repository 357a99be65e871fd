//! Authorities that the cluster's owner brings, in the Secret of `spec.certificates.caRef`.

use std::collections::{BTreeMap, BTreeSet};

use crds::Reason;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use plan::inputs::InputsProblem;
use plan::pki::{PkiRow, authorities};
use plan::rotation::own::{OwnAuthorities, OwnAuthority};
use plan::rotation::{Subject, retired};
use plan::settings::digest;

use super::authority::Authority;
use super::certificate::Certificate;
use super::material::Own;
use super::ring::KeyRing;
use super::{Pki, PkiError, PkiOwner, private_key, suitable};
use crate::context::Context;
use crate::error::Error;

/// What the Secret holds, or what is wrong with it; none: the spec refers to none.
pub async fn read(ctx: &Context, owner: &PkiOwner) -> Result<Option<Result<Own, InputsProblem>>, Error> {
    let Some(name) = &owner.own_authorities else { return Ok(None) };
    if *name == owner.keys_secret() {
        let message = format!(
            "spec.certificates.caRef: Secret {name} is the one that the operator keeps the cluster's keys in: put the pairs into another one"
        );
        return Ok(Some(Err(InputsProblem::waits(Reason::InvalidAuthority, message))));
    }
    let secret = owner.find(ctx, name).await?;
    let secret = secret.filter(|secret| secret.metadata.deletion_timestamp.is_none());
    Ok(Some(parse(name, owner.table, secret.as_ref())))
}

/// Those of these fingerprints.
///
/// # Errors
///
/// The Secret holds others by now, or cannot be read any more: it is decided on anew.
pub async fn decided(ctx: &Context, owner: &PkiOwner, wanted: &BTreeMap<Subject, String>) -> Result<Own, Error> {
    if wanted.is_empty() {
        return Ok(Own::new());
    }
    let mut own = read(ctx, owner).await?.and_then(Result::ok).unwrap_or_default();
    own.retain(|subject, _| wanted.contains_key(subject));
    let found: BTreeMap<Subject, String> =
        own.iter().map(|(subject, authority)| (*subject, fingerprint(authority))).collect();
    if found != *wanted {
        return Err(Error::Failed {
            action: format!("take the authorities of spec.certificates.caRef for {}", owner.title()),
            source: "the Secret was changed just now".into(),
        });
    }
    Ok(own)
}

/// What everybody may know of them, beside the Secret of the cluster's keys.
pub fn seen(own: &Own, table: &'static [PkiRow], keys: Option<&Secret>) -> Result<OwnAuthorities, InputsProblem> {
    let data = keys.and_then(|secret| secret.data.as_ref());
    let pki = data.and_then(|data| Pki::from_data(table, "the cluster's keys", data).ok());
    let former = keys.map(|secret| retired::read(&secret.metadata)).unwrap_or_default();
    let one = |(subject, authority): (&Subject, &Authority)| {
        let ring = pki.as_ref().and_then(|pki| pki.authority(*subject).ok());
        let retired = former.get(subject);
        let seen = of_authority(authority, ring, retired).map_err(|error| {
            InputsProblem::waits(Reason::InvalidAuthority, format!("spec.certificates.caRef: {error}"))
        });
        Ok((*subject, seen?))
    };
    own.iter().map(one).collect()
}

fn of_authority(
    authority: &Authority,
    ring: Option<&KeyRing<Authority>>,
    retired: Option<&BTreeSet<String>>,
) -> Result<OwnAuthority, PkiError> {
    let certificate = Certificate::parse("the authority", authority.certificate())?;
    let of_ring = |text: &str| Certificate::parse("the cluster's authority", text).ok();
    let known = ring.into_iter().flat_map(KeyRing::certificates);
    let mut same = known.filter(|text| of_ring(text).is_some_and(|known| known.is_same_as(&certificate)));
    let signer = ring.and_then(|ring| of_ring(ring.signer().certificate()));
    let goes_on = signer.is_some_and(|signer| signer.shares_key_with(&certificate));
    let key = key_digest(&certificate)?;
    Ok(OwnAuthority {
        fingerprint: same.next().map_or_else(|| fingerprint(authority), |text| digest(&text.trim())),
        begins: certificate.not_before()?,
        ends: certificate.not_after()?,
        is_self_signed: certificate.is_self_signed(),
        is_retired: !goes_on && retired.is_some_and(|retired| retired.contains(&key)),
    })
}

/// As rings have it.
pub fn fingerprint(authority: &Authority) -> String {
    digest(&authority.certificate().trim())
}

/// What is remembered of an authority that is retired: its key, since whatever that signed is believed with any
/// certificate of it.
pub(super) fn key_digest(certificate: &Certificate) -> Result<String, PkiError> {
    Ok(retired::shortened(&digest(&certificate.public_key_hash()?)))
}

/// The pairs in the Secret.
///
/// # Errors
///
/// A Secret that is not there, holds none, or one that cannot be used; the message says of which entry what is wrong,
/// and what to do.
pub fn parse(name: &str, table: &[PkiRow], secret: Option<&Secret>) -> Result<Own, InputsProblem> {
    let allowed = authorities(table);
    let refused = |reason, what: String| {
        let message = format!("Secret {name} of spec.certificates.caRef {what}");
        InputsProblem::waits(reason, message)
    };
    let invalid = |what: String| refused(Reason::InvalidAuthority, what);
    let pair_of = |subject: &Subject| format!("{0}.crt with {0}.key", subject.stem());
    let names = || allowed.iter().map(pair_of).collect::<Vec<_>>().join(", ");
    let Some(secret) = secret else {
        let what = format!("is not there: make it, with one or more of {}, in PEM", names());
        return Err(refused(Reason::SecretNotFound, what));
    };
    let data = secret.data.clone().unwrap_or_default();
    if let Some(entry) = data.keys().find(|entry| !is_known(&allowed, entry)) {
        return Err(invalid(format!("has the entry {entry}, which nothing reads: remove it; allowed are {}", names())));
    }
    let mut own = Own::new();
    for subject in &allowed {
        let (subject, stem) = (*subject, subject.stem());
        let (certificate, key) = (format!("{stem}.crt"), format!("{stem}.key"));
        let authority = match (value(&data, &certificate), value(&data, &key)) {
            (None, None) => continue,
            (Some(_), None) => return Err(refused(Reason::SecretNotFound, lacks(&key, &certificate))),
            (None, Some(_)) => return Err(refused(Reason::SecretNotFound, lacks(&certificate, &key))),
            (Some(pem), Some(secret)) => pair(subject, (&certificate, pem), (&key, secret)).map_err(invalid)?,
        };
        own.insert(subject, authority);
    }
    if own.is_empty() {
        return Err(refused(Reason::SecretNotFound, format!("holds no authority: add one or more of {}", names())));
    }
    match double(&own) {
        Some((one, other)) => Err(invalid(format!(
            "has one key for {} and {}: give each a key of its own, since whatever one signs would be believed as the other's",
            one.name(),
            other.name()
        ))),
        None => Ok(own),
    }
}

fn is_known(allowed: &[Subject], entry: &str) -> bool {
    let stem = entry.strip_suffix(".crt").or_else(|| entry.strip_suffix(".key"));
    allowed.iter().any(|known| stem == Some(known.stem()))
}

fn lacks(entry: &str, beside: &str) -> String {
    format!("has {beside} and lacks {entry}: add it, in PEM, or remove {beside}")
}

fn value<'a>(data: &'a BTreeMap<String, ByteString>, entry: &str) -> Option<&'a [u8]> {
    data.get(entry).map(|value| value.0.trim_ascii()).filter(|value| !value.is_empty())
}

fn pair(subject: Subject, certificate: (&str, &[u8]), key: (&str, &[u8])) -> Result<Authority, String> {
    let text = |(entry, value): (&str, &[u8])| {
        std::str::from_utf8(value).map(str::to_owned).map_err(|_| format!("cannot be used: {entry}: it is no text"))
    };
    let said = |entry: &str, problem: String| format!("cannot be used: {entry}: {problem}");
    let pem = suitable::certificate(certificate.0, &text(certificate)?, subject)
        .map_err(|problem| said(certificate.0, problem))?;
    let parsed = Certificate::parse(certificate.0, &pem).map_err(|error| said(certificate.0, error.to_string()))?;
    let key_pem = private_key::of_certificate(&text(key)?, &parsed).map_err(|problem| said(key.0, problem))?;
    Authority::parse(certificate.0, &pem, &key_pem).map_err(|error| said(certificate.0, error.to_string()))
}

/// Two that have one key.
fn double(own: &Own) -> Option<(Subject, Subject)> {
    let keys = own.iter().map(|(subject, authority)| {
        let certificate = Certificate::parse("the authority", authority.certificate()).ok();
        (*subject, certificate)
    });
    let keys: Vec<(Subject, Option<Certificate>)> = keys.collect();
    keys.iter().enumerate().find_map(|(index, (one, first))| {
        let shares = |(_, second): &&(Subject, Option<Certificate>)| {
            first.as_ref().zip(second.as_ref()).is_some_and(|(first, second)| first.shares_key_with(second))
        };
        keys.iter().skip(index + 1).find(shares).map(|(other, _)| (*one, *other))
    })
}

#[cfg(test)]
mod tests;
