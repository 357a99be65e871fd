//! What a machine says of its certificates, cut to what the schema takes.

use crds::certificates::{CertificateSeen, ISSUER_LIMIT, MOST_CERTIFICATES, renewer};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::sanitize::clean;

/// Those of names that are known, each once, with an end that is a time.
pub(super) fn certificates(report: &Value) -> Vec<CertificateSeen> {
    let told = report.get("certificates").and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<CertificateSeen> = Vec::new();
    for certificate in told.filter_map(certificate) {
        if found.len() < MOST_CERTIFICATES && found.iter().all(|there| there.name != certificate.name) {
            found.push(certificate);
        }
    }
    found
}

fn certificate(value: &Value) -> Option<CertificateSeen> {
    let name = value.get("name").and_then(Value::as_str).filter(|name| renewer(name).is_some())?;
    let seconds = value.get("expiresAt").and_then(Value::as_i64)?;
    let issuer = value.get("issuer").and_then(Value::as_str).unwrap_or_default();
    let issuer: String = clean(issuer, ISSUER_LIMIT).chars().filter(char::is_ascii).collect();
    Some(CertificateSeen {
        name: name.to_owned(),
        expires_at: Time(Timestamp::from_second(seconds).ok()?),
        issuer: Some(issuer).filter(|issuer| !issuer.is_empty()),
        outdated: value.get("outdated").and_then(Value::as_bool).unwrap_or_default(),
    })
}
