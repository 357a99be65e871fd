//! What the server keeps, and what requests do to it.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Cut;
use super::apply;
use super::kept::Kept;
use super::target::{Target, key, selected, status};
use super::watches::Watches;

/// All that the server keeps.
#[derive(Clone, Default)]
pub(super) struct State {
    /// By `<plural>/<namespace>/<name>`.
    pub objects: BTreeMap<String, Kept>,
    pub requests: Vec<String>,
    pub writes: usize,
    /// All requests.
    pub asked: usize,
    pub cut: Option<(usize, Cut)>,
    /// From which write on, and how many in a row, are answered with a conflict.
    pub conflicts: Option<(usize, usize)>,
    /// Requests that are answered so without anything being done: how they begin, how often, and what is answered.
    pub refusals: Vec<(String, usize, Value)>,
    /// UIDs of Pods whose eviction was granted, in order.
    pub evicted: Vec<String>,
    /// Which entries of an object's `data` a manager has applied, by the object's key and the manager.
    pub applied: BTreeMap<(String, String), Vec<String>>,
    /// How often an object of a key was made.
    pub made: BTreeMap<String, usize>,
    pub version: u64,
    /// None: none are served.
    pub watches: Option<Watches>,
}

impl State {
    pub fn refuse(&mut self, asked: &str) -> Option<(StatusCode, Value)> {
        let begins =
            |(request, times, _): &&mut (String, usize, Value)| *times > 0 && asked.starts_with(request.as_str());
        let (_, times, answer) = self.refusals.iter_mut().find(begins)?;
        *times -= 1;
        let code = u16::try_from(answer["code"].as_u64().unwrap()).unwrap();
        Some((StatusCode::from_u16(code).unwrap(), answer.clone()))
    }

    pub fn read(&self, target: &Target<'_>, query: &str) -> (StatusCode, Value) {
        if let Some(name) = target.name {
            let object = self.objects.get(&key(target.plural, target.namespace, name));
            return match (object, target.sub) {
                (Some(object), Some("log")) => {
                    (StatusCode::OK, Value::String(object["log"].as_str().unwrap_or("a log\n").to_owned()))
                }
                (Some(object), _) => (StatusCode::OK, object.to_value()),
                (None, _) => {
                    let (code, mut answer) = status(404, "NotFound");
                    answer["details"] = json!({ "name": name, "kind": target.plural });
                    (code, answer)
                }
            };
        }
        let prefix = match target.namespace {
            "" => format!("{}/", target.plural),
            namespace => key(target.plural, namespace, ""),
        };
        let number = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(of, _)| *of == name)?.1.parse::<usize>().ok()
        };
        let (first, limit) = (number("continue").unwrap_or(0), number("limit").unwrap_or(usize::MAX));
        let mut items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|(key, object)| key.starts_with(&prefix) && selected(object, query))
            .map(|(_, object)| &**object)
            .skip(first)
            .collect();
        let mut metadata = match items.len() > limit {
            true => json!({ "continue": (first + limit).to_string() }),
            false => json!({}),
        };
        if self.watches.is_some() {
            metadata["resourceVersion"] = json!(self.version.to_string());
        }
        items.truncate(limit);
        (StatusCode::OK, json!({ "kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items }))
    }

    pub fn write(&mut self, method: &Method, target: &Target<'_>, query: &str, body: Value) -> (StatusCode, Value) {
        let name = target.name.or(body["metadata"]["name"].as_str()).unwrap_or_default().to_owned();
        let key = key(target.plural, target.namespace, &name);
        let old = self.objects.get(&key).map(Kept::to_value);
        match target.sub {
            Some("eviction") => return self.evict(&key, old, target.namespace, &body),
            Some("token") => return token(&key, old.as_ref(), body),
            _ => {}
        }
        match (method.as_str(), old) {
            // A review is answered, and not kept.
            ("POST", _) if target.plural.ends_with("reviews") => (StatusCode::CREATED, body),
            ("POST", Some(_)) => status(409, "AlreadyExists"),
            ("POST", None) => (StatusCode::CREATED, self.create(&key, body)),
            // What has a UID is one that was there.
            ("PATCH", None) if body["metadata"]["uid"].is_string() => status(409, "Conflict"),
            ("PATCH", None) if body["apiVersion"].is_string() => {
                let mut made = body.clone();
                apply::sign(&mut made, &body, manager(query));
                self.left_out(&key, &body, manager(query));
                (StatusCode::CREATED, self.create(&key, made))
            }
            (_, None) => status(404, "NotFound"),
            (_, Some(old)) if violates(&old, &body) => status(409, "Conflict"),
            ("DELETE", Some(mut old)) => {
                if body["gracePeriodSeconds"].is_number() {
                    old["metadata"]["deletionGracePeriodSeconds"] = body["gracePeriodSeconds"].clone();
                }
                (StatusCode::OK, self.delete(&key, old))
            }
            ("PUT", Some(mut old)) => {
                old["status"] = body["status"].clone();
                (StatusCode::OK, self.store(&key, old))
            }
            (_, Some(mut old)) => {
                if target.plural == "nodes" && body["apiVersion"].is_string() {
                    apply::own(&mut old, &body, manager(query));
                } else if body["apiVersion"].is_string() {
                    apply::sign(&mut old, &body, manager(query));
                    for name in self.left_out(&key, &body, manager(query)) {
                        old["data"].as_object_mut().map(|data| data.remove(&name));
                    }
                }
                match target.sub {
                    Some("status") => merge(&mut old["status"], body["status"].clone()),
                    _ => merge(&mut old, without_preconditions(body)),
                }
                (StatusCode::OK, self.store(&key, old))
            }
        }
    }

    /// The entries of `data` that this manager applied before and does not now: they go, with server-side apply.
    fn left_out(&mut self, key: &str, body: &Value, manager: &str) -> Vec<String> {
        let now: Vec<String> = body["data"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let before = self.applied.insert((key.to_owned(), manager.to_owned()), now.clone()).unwrap_or_default();
        before.into_iter().filter(|name| !now.contains(name)).collect()
    }

    pub fn create(&mut self, key: &str, mut object: Value) -> Value {
        self.version += 1;
        // The same in every life of the same world: names follow from UIDs.
        let times = self.made.entry(key.to_owned()).or_default();
        *times += 1;
        object["metadata"]["uid"] = json!(format!("{}-{times}", key.replace('/', "-")));
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["generation"] = json!(1);
        self.store(key, object)
    }

    pub fn store(&mut self, key: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let goes = object["metadata"]["deletionTimestamp"].is_string();
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
        let is_gone = goes && !held;
        match is_gone {
            true => drop(self.objects.remove(key)),
            false => drop(self.objects.insert(key.to_owned(), object.clone().into())),
        }
        if let Some(watches) = &mut self.watches {
            watches.tell(key, if is_gone { "DELETED" } else { "MODIFIED" }, &object);
        }
        object
    }

    pub fn delete(&mut self, key: &str, mut old: Value) -> Value {
        old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        self.store(key, old)
    }
}

/// What a TokenRequest of a ServiceAccount is answered: its token names it.
fn token(key: &str, account: Option<&Value>, mut request: Value) -> (StatusCode, Value) {
    if account.is_none() {
        return status(404, "NotFound");
    }
    request["status"] = json!({ "token": format!("token of {key}"), "expirationTimestamp": "2026-01-01T04:00:00Z" });
    (StatusCode::CREATED, request)
}

fn manager(query: &str) -> &str {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(of, _)| *of == "fieldManager").map(|(_, manager)| manager).unwrap_or_default()
}

/// True when the body names another UID or another version than the object has.
fn violates(old: &Value, body: &Value) -> bool {
    let asked = |field: &str| {
        let by_delete = &body["preconditions"][field];
        if by_delete.is_string() { by_delete.clone() } else { body["metadata"][field].clone() }
    };
    ["uid", "resourceVersion"].iter().any(|field| asked(field).is_string() && asked(field) != old["metadata"][*field])
}

fn without_preconditions(mut body: Value) -> Value {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("uid");
        metadata.remove("resourceVersion");
    }
    body
}

/// A JSON merge patch.
fn merge(old: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *old = patch;
        return;
    };
    if !old.is_object() {
        *old = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => drop(old.as_object_mut().unwrap().remove(&name)),
            value => merge(&mut old[&name], value),
        }
    }
}
