//! Paths of requests, what they select, keys of objects, and answers that say no.

use http::StatusCode;
use serde_json::{Value, json};

/// What a path names; what is of no namespace, or of all, has an empty one.
pub(super) struct Target<'a> {
    pub namespace: &'a str,
    pub plural: &'a str,
    pub name: Option<&'a str>,
    pub sub: Option<&'a str>,
}

impl<'a> Target<'a> {
    pub fn parse(path: &'a str) -> Option<Self> {
        let (namespace, rest) = match path.split_once("/namespaces/") {
            Some((_, rest)) => match rest.split_once('/') {
                Some(parts) => parts,
                None => return Some(Self { namespace: "", plural: "namespaces", name: Some(rest), sub: None }),
            },
            None => {
                let of_group = path.strip_prefix("/apis/").and_then(|rest| rest.split_once('/'));
                let rest = of_group.map_or_else(|| path.strip_prefix("/api/"), |(_, rest)| Some(rest))?;
                ("", rest.split_once('/')?.1)
            }
        };
        let mut parts = rest.split('/');
        Some(Self { namespace, plural: parts.next()?, name: parts.next(), sub: parts.next() })
    }
}

/// Whether what is listed is also to be watched.
pub(super) fn is_watch(query: &str) -> bool {
    query.split('&').any(|pair| pair == "watch=true")
}

pub(super) fn key(plural: &str, namespace: &str, name: &str) -> String {
    format!("{plural}/{namespace}/{name}")
}

/// A `Status`, as an answer.
pub(super) fn status(code: u16, reason: &str) -> (StatusCode, Value) {
    let answer = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason });
    (StatusCode::from_u16(code).unwrap(), answer)
}

pub(super) fn reason_of(code: u16) -> &'static str {
    match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        _ => "ServiceUnavailable",
    }
}

/// `labelSelector=a%3Db` and `fieldSelector=spec.clusterName%3Da`; anything else selects all.
pub(super) fn selected(object: &Value, query: &str) -> bool {
    query.split('&').filter_map(|pair| pair.split_once('=')).all(|(kind, selector)| {
        let selector = selector.replace("%3D", "=").replace("%2F", "/").replace("%21", "!").replace("%2C", ",");
        selector.split(',').filter_map(|term| term.split_once('=')).all(|(name, value)| match kind {
            "labelSelector" => object["metadata"]["labels"][name] == value,
            "fieldSelector" => {
                let (field, other) = match name.strip_suffix('!') {
                    Some(field) => (field, true),
                    None => (name, false),
                };
                let is = object.pointer(&format!("/{}", field.replace('.', "/")));
                (is == Some(&json!(value))) != other
            }
            _ => true,
        })
    })
}
