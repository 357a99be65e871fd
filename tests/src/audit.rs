//! The audit log of an API server: who asked for what, and what was answered.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;

/// A request, as far as it concerns rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked: `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group; the core group is empty.
    pub group: String,
    /// The plural, with `/SUBRESOURCE` if there is one; empty: no resource (`/version`).
    pub resource: String,
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object, as far as the request named one.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Why it was refused, if it was.
    pub message: String,
    /// When it arrived.
    pub at: Timestamp,
}

impl Request {
    /// Whether it would change something.
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    user: User,
    verb: String,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Status,
    request_received_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    resource: String,
    subresource: String,
    api_group: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
    message: String,
}

/// All requests in the audit logs of a directory, the older ones of a rotation among them; in no order.
pub fn read(directory: &Path) -> Result<Vec<Request>> {
    let mut requests = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| format!("failed to list {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("audit") || !name.ends_with(".log") {
            continue;
        }
        let file = File::open(&path).with_context(|| format!("failed to open {}", path.display()))?;
        for line in BufReader::new(file).lines() {
            let line = line.with_context(|| format!("failed to read {}", path.display()))?;
            // The last line may be on its way yet.
            if let Ok(line) = serde_json::from_str(&line) {
                requests.push(request(line));
            }
        }
    }
    Ok(requests)
}

fn request(line: Line) -> Request {
    let object = line.object_ref;
    let subresource = match object.subresource.as_str() {
        "" => String::new(),
        name => format!("/{name}"),
    };
    Request {
        user: line.user.username,
        verb: line.verb,
        group: object.api_group,
        resource: format!("{}{subresource}", object.resource),
        namespace: object.namespace,
        name: object.name,
        code: line.response_status.code,
        message: line.response_status.message,
        at: line.request_received_timestamp,
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_line_is_read_as_the_request_that_it_tells_of() {
        let directory = tempfile::tempdir().unwrap();
        let line = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete",
            "requestURI":"/x","verb":"patch","user":{"username":"system:serviceaccount:fleet:run","groups":["a"]},
            "sourceIPs":["10.0.0.1"],"userAgent":"x","objectRef":{"resource":"playbookruns","namespace":"fleet","name":"run",
            "apiGroup":"clusterwright.dev","apiVersion":"v1alpha1","subresource":"status"},"responseStatus":{"metadata":{},"code":200},
            "requestReceivedTimestamp":"2026-11-21T05:00:00.000001Z","stageTimestamp":"2026-11-21T05:00:00.000002Z"}"#;
        let line = line.replace('\n', " ");
        std::fs::write(directory.path().join("audit.log"), format!("{line}\n{{\"kind\"")).unwrap();
        std::fs::write(directory.path().join("audit-2026-11-21T04-00-00.000.log"), line + "\n").unwrap();
        std::fs::write(directory.path().join("kube-apiserver.log"), "no audit\n").unwrap();
        let requests = read(directory.path()).unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0], requests[1]);
        let request = &requests[0];
        let seen = (request.group.as_str(), request.resource.as_str(), request.name.as_str(), request.code);
        assert_eq!(seen, ("clusterwright.dev", "playbookruns/status", "run", 200));
        assert!(request.writes());
    }
}
