//! Paths of requests, keys of objects, and answers that say no.

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
