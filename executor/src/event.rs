//! The lines of the callback plugin, and of the program that makes or stages a backup, as values. A line that is no
//! event, or of a newer kind, is passed over: the stream is read to its end whatever is in it.

use std::collections::BTreeMap;

use crds::etcd_backup::BackupContent;
use crds::etcd_restore::StagedBackup;
use serde_json::Value;

use crate::redact::Redactor;

/// How a task ended on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// Well.
    Ok,
    /// Not well.
    Failed,
    /// The host did not answer.
    Unreachable,
    /// It did not apply.
    Skipped,
}

/// The result of one task on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// The host.
    pub host: String,
    /// The task's name.
    pub task: String,
    /// How it ended.
    pub status: TaskStatus,
    /// It changed something.
    pub changed: bool,
    /// The failure is one that the playbook does not mind.
    pub ignored: bool,
    /// Its message.
    pub message: String,
    /// CamelCase, if it gave one.
    pub reason: Option<String>,
    /// What failed is a comparison that was made: the host is not as wanted.
    pub differs: bool,
    /// The finding that the executor is to keep.
    pub finding: Option<Value>,
}

/// The counts of a host at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Failures that no rescue caught.
    pub failures: i64,
    /// Times it could not be reached.
    pub unreachable: i64,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A playbook begins.
    Playbook {
        /// Its step: the file's name without `.yml`.
        step: String,
        /// It is the step's probe.
        probe: bool,
        /// Tasks that it is known to have.
        tasks: i64,
    },
    /// A play begins.
    Play,
    /// A task begins.
    Task {
        /// Its name.
        name: String,
    },
    /// A task ended on a host.
    Result(Box<TaskResult>),
    /// A step is about to begin, and waits until it is let go.
    Gate {
        /// The step: the file's name without `.yml`.
        step: String,
    },
    /// So many bytes of a backup are stored.
    BackupProgress {
        /// Bytes of the snapshot.
        bytes: i64,
    },
    /// A backup is whole in its storage.
    Backup(Box<BackupContent>),
    /// So many bytes of a backup were brought to a host.
    StagingProgress {
        /// The host.
        host: String,
        /// Bytes of the snapshot.
        bytes: i64,
    },
    /// A backup lies ready on the machines.
    Staged(Box<StagedBackup>),
    /// Everything ended.
    Stats(BTreeMap<String, HostStats>),
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Unix time.
    pub at: f64,
    /// Its kind.
    pub what: What,
}

impl Event {
    /// The event of a line, if it is one. Bytes that are no UTF-8 become replacement characters.
    pub fn parse(line: &[u8]) -> Option<Event> {
        let value: Value = serde_json::from_str(&String::from_utf8_lossy(line)).ok()?;
        let at = value.get("at").and_then(Value::as_f64).unwrap_or(0.0);
        let what = match value.get("event")?.as_str()? {
            "playbook" => What::Playbook {
                step: text(&value, "file").trim_end_matches(".yml").to_owned(),
                probe: text(&value, "dir") == "probe",
                tasks: integer(&value, "tasks"),
            },
            "play" => What::Play,
            "task" => What::Task { name: text(&value, "name").to_owned() },
            "result" => What::Result(Box::new(result(&value)?)),
            "gate" => What::Gate { step: text(&value, "file").trim_end_matches(".yml").to_owned() },
            "backup_progress" => What::BackupProgress { bytes: integer(&value, "bytes") },
            "backup" => What::Backup(serde_json::from_value(value.get("content")?.clone()).ok()?),
            "staging_progress" => {
                What::StagingProgress { host: text(&value, "host").to_owned(), bytes: integer(&value, "bytes") }
            }
            "staged" => What::Staged(serde_json::from_value(value.get("staged")?.clone()).ok()?),
            "stats" => What::Stats(stats(&value)),
            _ => return None,
        };
        Some(Event { at, what })
    }

    /// Redacts text that people and machines wrote, but not the names and words by which the fold decides: a password
    /// may be the name of a host.
    pub fn redact(&mut self, redactor: &Redactor) {
        match &mut self.what {
            What::Task { name } => redactor.redact_text(name),
            What::Result(result) => {
                redactor.redact_text(&mut result.task);
                redactor.redact_text(&mut result.message);
                if let Some(finding) = &mut result.finding {
                    redact_value(finding, redactor);
                }
            }
            What::Playbook { .. }
            | What::Play
            | What::Gate { .. }
            | What::BackupProgress { .. }
            | What::Backup(_)
            | What::StagingProgress { .. }
            | What::Staged(_)
            | What::Stats(_) => {}
        }
    }
}

fn redact_value(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => redactor.redact_text(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|field| redact_value(field, redactor)),
        _ => {}
    }
}

fn result(value: &Value) -> Option<TaskResult> {
    let status = match text(value, "status") {
        "ok" => TaskStatus::Ok,
        "failed" => TaskStatus::Failed,
        "unreachable" => TaskStatus::Unreachable,
        "skipped" => TaskStatus::Skipped,
        _ => return None,
    };
    let reason = text(value, "reason");
    Some(TaskResult {
        host: text(value, "host").to_owned(),
        task: text(value, "task").to_owned(),
        status,
        changed: flag(value, "changed"),
        ignored: flag(value, "ignored"),
        message: text(value, "msg").to_owned(),
        reason: (!reason.is_empty()).then(|| reason.to_owned()),
        differs: flag(value, "differs"),
        finding: value.get("finding").filter(|finding| !finding.is_null()).cloned(),
    })
}

fn stats(value: &Value) -> BTreeMap<String, HostStats> {
    let hosts = value.get("hosts").and_then(Value::as_object).into_iter().flatten();
    hosts
        .map(|(name, counts)| {
            let stats =
                HostStats { failures: integer(counts, "failures"), unreachable: integer(counts, "unreachable") };
            (name.clone(), stats)
        })
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn integer(value: &Value, key: &str) -> i64 {
    value.get(key).and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Event, TaskStatus, What};
    use crate::redact::Redactor;

    #[test]
    fn events_of_the_plugin_are_read() {
        let parse = |line: &str| Event::parse(line.as_bytes()).unwrap().what;
        assert_eq!(
            parse(r#"{"event":"playbook","at":1.5,"file":"container-runtime.yml","dir":"probe","tasks":7}"#),
            What::Playbook { step: "container-runtime".into(), probe: true, tasks: 7 }
        );
        assert_eq!(parse(r#"{"event":"task","at":1,"name":"start","id":"x"}"#), What::Task { name: "start".into() });
        let What::Result(result) = parse(
            r#"{"event":"result","at":1,"host":"w1","task":"t","status":"failed","changed":false,"ignored":true,"msg":"no","reason":null,"finding":null,"item":null}"#,
        ) else {
            panic!("no result")
        };
        assert_eq!((result.status, result.ignored, result.reason), (TaskStatus::Failed, true, None));
    }

    #[test]
    fn what_is_no_event_is_nothing() {
        for line in ["", "x", "{}", "[1]", "null", r#"{"event":1}"#, r#"{"event":"new"}"#, r#"{"event":"result"}"#] {
            assert_eq!(Event::parse(line.as_bytes()), None, "{line}");
        }
        assert_eq!(Event::parse(b"\xff\xfe"), None);
        let deep = format!("{{\"event\":\"task\",\"x\":{}}}", "[".repeat(100_000));
        assert_eq!(Event::parse(deep.as_bytes()), None);
    }

    #[test]
    fn a_password_that_is_a_word_of_the_stream_does_not_blind_the_fold() {
        let secrets = [("password.x".to_owned(), b"unreachable".to_vec())].into_iter().collect();
        let line = r#"{"event":"result","at":1,"host":"unreachable","task":"unreachable","status":"unreachable",
            "msg":"it is unreachable","finding":{"unreachable":["so unreachable"]}}"#;
        let mut event = Event::parse(line.as_bytes()).unwrap();
        event.redact(&Redactor::new(&secrets));
        let What::Result(result) = event.what else { panic!("no result") };
        assert_eq!((result.host.as_str(), result.status), ("unreachable", TaskStatus::Unreachable));
        assert_eq!((result.task.as_str(), result.message.as_str()), ("[secret]", "it is [secret]"));
        assert_eq!(result.finding, Some(serde_json::json!({"unreachable": ["so [secret]"]})));
    }

    #[test]
    fn foreign_bytes_in_an_event_become_replacement_characters() {
        let event = Event::parse(b"{\"event\":\"task\",\"name\":\"a\xffb\"}").unwrap();
        assert_eq!(event.what, What::Task { name: "a\u{fffd}b".into() });
    }
}
