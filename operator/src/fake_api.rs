//! An API server for tests, in memory: it keeps objects, records every request, and can be cut off after a write. It
//! knows no schema and runs no controller; what a cluster would do, the test does by [`FakeApi::edit`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::{Args, FromArgMatches};
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use crate::context::Context;
use crate::metrics::Metrics;
use crate::settings::Settings;

/// How a server that is cut off treats the write at which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It does not arrive.
    Before,
    /// It is done, and the answer is lost.
    After,
}

#[derive(Clone, Default)]
struct State {
    /// By `<plural>/<namespace>/<name>`.
    objects: BTreeMap<String, Value>,
    requests: Vec<String>,
    writes: usize,
    cut: Option<(usize, Cut)>,
    /// From which write on, and how many in a row, are answered with a conflict.
    conflicts: Option<(usize, usize)>,
    /// Requests that are answered so without anything being done: how they begin, how often, and what is answered.
    refusals: Vec<(String, usize, Value)>,
    /// UIDs of Pods whose eviction was granted, in order.
    evicted: Vec<String>,
    /// How often an object of a key was made.
    made: BTreeMap<String, usize>,
    version: u64,
}

/// The server; clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct FakeApi {
    state: Arc<Mutex<State>>,
    happenings: Arc<Mutex<Vec<(String, Happening)>>>,
}

type Happening = Box<dyn FnOnce(&FakeApi) + Send>;

impl FakeApi {
    pub(crate) fn client(&self) -> Client {
        let api = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect_bytes().await?.to_vec();
                let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let (code, answer) = api.answer(&parts.method, &parts.uri.to_string(), body);
                let answer = match answer {
                    Value::String(text) => text.into_bytes(),
                    value => value.to_string().into_bytes(),
                };
                let mut response = Response::new(Body::from(answer));
                *response.status_mut() = code;
                Ok::<_, kube::Error>(response)
            }
        });
        Client::new(service, "default")
    }

    /// What passes may use, as an operator that has just started; its cache is filled by the test.
    pub(crate) fn context(&self) -> Arc<Context> {
        self.running().0
    }

    /// The same for controllers that run: until the sender is gone.
    pub(crate) fn running(&self) -> (Arc<Context>, tokio::sync::watch::Sender<bool>) {
        let command = Settings::augment_args(clap::Command::new("operator"));
        let settings = Settings::from_arg_matches(&command.get_matches_from(["operator"])).unwrap();
        Context::new(self.client(), settings, Metrics::new())
    }

    /// Another server with the same objects: what is done to one is not done to the other.
    pub(crate) fn copy(&self) -> Self {
        Self {
            state: Arc::new(Mutex::new(self.lock().clone())),
            happenings: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an object there (YAML, with kind and namespace), as somebody else would.
    pub(crate) fn put(&self, plural: &str, text: &str) {
        let object: Value = serde_yaml::from_str(text).unwrap();
        let key = key(
            plural,
            object["metadata"]["namespace"].as_str().unwrap_or_default(),
            object["metadata"]["name"].as_str().unwrap(),
        );
        self.lock().create(&key, object);
    }

    /// Changes an object, as somebody else would.
    pub(crate) fn edit(&self, key: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.lock();
        let mut object = state.objects[key].clone();
        change(&mut object);
        state.store(key, object);
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.lock().objects.get(key).cloned()
    }

    /// Everything of a kind.
    pub(crate) fn list<K: serde::de::DeserializeOwned>(&self, plural: &str) -> Vec<K> {
        let state = self.lock();
        let of_kind = state
            .objects
            .iter()
            .filter(|(key, _)| key.starts_with(&format!("{plural}/")));
        of_kind
            .map(|(_, object)| serde_json::from_value(object.clone()).unwrap())
            .collect()
    }

    /// Names of all objects but Events, which are told at best once.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock()
            .objects
            .keys()
            .filter(|key| !key.starts_with("events/"))
            .cloned()
            .collect()
    }

    /// Writes so far, without Events.
    pub(crate) fn writes(&self) -> usize {
        self.lock().writes
    }

    /// From the write of this number on (0 is the first) nothing arrives any more; `None` mends it.
    pub(crate) fn cut(&self, cut: Option<(usize, Cut)>) {
        self.lock().cut = cut;
    }

    /// From the write of this number on, so many writes in a row to what is there are answered with a conflict.
    pub(crate) fn conflict(&self, at: usize, times: usize) {
        self.lock().conflicts = Some((at, times));
    }

    /// So many requests that begin like this (`<METHOD> <plural>/<namespace>/<name>[/<subresource>]`) are answered with a
    /// failure of this code, with these details.
    pub(crate) fn refuse(&self, request: &str, times: usize, code: u16, details: Value) {
        let (_, mut answer) = status(code, reason_of(code));
        answer["details"] = details;
        self.lock().refusals.push((request.to_owned(), times, answer));
    }

    /// Just before the next request that begins like this.
    pub(crate) fn just_before(&self, request: &str, happens: impl FnOnce(&FakeApi) + Send + 'static) {
        self.happenings().push((request.to_owned(), Box::new(happens)));
    }

    fn happenings(&self) -> MutexGuard<'_, Vec<(String, Happening)>> {
        self.happenings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// UIDs of the Pods that were evicted, in order.
    pub(crate) fn evicted(&self) -> Vec<String> {
        self.lock().evicted.clone()
    }

    /// Changes so far, whoever made them.
    pub(crate) fn changes(&self) -> u64 {
        self.lock().version
    }

    /// Whether conflicts are being answered.
    pub(crate) fn is_disturbed(&self) -> bool {
        let state = self.lock();
        matches!(state.conflicts, Some((at, 1..)) if state.writes >= at)
    }

    /// Deletes what has lost its owners, as a garbage collector does.
    pub(crate) fn collect_garbage(&self) {
        let mut state = self.lock();
        loop {
            let uids: Vec<Value> = state
                .objects
                .values()
                .map(|object| object["metadata"]["uid"].clone())
                .collect();
            let orphan = |object: &Value| {
                let owners = object["metadata"]["ownerReferences"].as_array();
                let owners = owners.filter(|owners| !owners.is_empty());
                let going = object["metadata"]["deletionTimestamp"].is_string();
                !going
                    && owners.is_some_and(|owners| owners.iter().all(|owner| !uids.contains(&owner["uid"])))
            };
            let found = state.objects.iter().find(|(_, object)| orphan(object));
            let Some((key, object)) = found.map(|(key, object)| (key.clone(), object.clone())) else {
                return;
            };
            state.delete(&key, object);
        }
    }

    /// `<METHOD> <plural>/<namespace>/<name>[/<subresource>]` of every write, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    fn answer(&self, method: &Method, uri: &str, body: Value) -> (StatusCode, Value) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let Some(target) = Target::parse(path) else {
            return status(404, "NotFound");
        };
        let name = target
            .name
            .or(body["metadata"]["name"].as_str())
            .unwrap_or_default();
        let sub = target.sub.map(|sub| format!("/{sub}")).unwrap_or_default();
        let asked = format!("{method} {}/{}/{name}{sub}", target.plural, target.namespace);
        self.let_happen(&asked);
        let mut state = self.lock();
        if let Some(answer) = state.refuse(&asked) {
            return answer;
        }
        if *method == Method::GET {
            return state.read(&target, query);
        }
        if target.plural == "events" {
            return state.write(method, &target, body);
        }
        let number = state.writes;
        match state.cut {
            Some((at, _)) if number > at => return status(503, "ServiceUnavailable"),
            Some((at, Cut::Before)) if number == at => return status(503, "ServiceUnavailable"),
            _ => {}
        }
        if let Some((at, left @ 1..)) = state.conflicts
            && number >= at
            && *method != Method::POST
        {
            state.conflicts = Some((at, left - 1));
            return status(409, "Conflict");
        }
        state.writes += 1;
        state.requests.push(asked);
        let answer = state.write(method, &target, body);
        match state.cut {
            Some((at, Cut::After)) if number == at => status(503, "ServiceUnavailable"),
            _ => answer,
        }
    }

    fn let_happen(&self, asked: &str) {
        let mut happenings = self.happenings();
        let place = happenings
            .iter()
            .position(|(request, _)| asked.starts_with(request.as_str()));
        let due = place.map(|place| happenings.remove(place));
        drop(happenings);
        if let Some((_, happens)) = due {
            happens(self);
        }
    }
}

/// What a path names; what is of no namespace, or of all, has an empty one.
struct Target<'a> {
    namespace: &'a str,
    plural: &'a str,
    name: Option<&'a str>,
    sub: Option<&'a str>,
}

impl<'a> Target<'a> {
    fn parse(path: &'a str) -> Option<Self> {
        let (namespace, rest) = match path.split_once("/namespaces/") {
            Some((_, rest)) => rest.split_once('/')?,
            None => {
                let of_group = path.strip_prefix("/apis/").and_then(|rest| rest.split_once('/'));
                let rest = of_group.map_or_else(|| path.strip_prefix("/api/"), |(_, rest)| Some(rest))?;
                ("", rest.split_once('/')?.1)
            }
        };
        let mut parts = rest.split('/');
        Some(Self {
            namespace,
            plural: parts.next()?,
            name: parts.next(),
            sub: parts.next(),
        })
    }
}

fn key(plural: &str, namespace: &str, name: &str) -> String {
    format!("{plural}/{namespace}/{name}")
}

fn status(code: u16, reason: &str) -> (StatusCode, Value) {
    let answer = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason });
    (StatusCode::from_u16(code).unwrap(), answer)
}

fn reason_of(code: u16) -> &'static str {
    match code {
        404 => "NotFound",
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        _ => "ServiceUnavailable",
    }
}

impl State {
    fn refuse(&mut self, asked: &str) -> Option<(StatusCode, Value)> {
        let begins = |(request, times, _): &&mut (String, usize, Value)| {
            *times > 0 && asked.starts_with(request.as_str())
        };
        let (_, times, answer) = self.refusals.iter_mut().find(begins)?;
        *times -= 1;
        let code = u16::try_from(answer["code"].as_u64().unwrap()).unwrap();
        Some((StatusCode::from_u16(code).unwrap(), answer.clone()))
    }

    fn read(&self, target: &Target<'_>, query: &str) -> (StatusCode, Value) {
        if let Some(name) = target.name {
            let object = self.objects.get(&key(target.plural, target.namespace, name));
            return match (object, target.sub) {
                (Some(object), Some("log")) => (
                    StatusCode::OK,
                    Value::String(object["log"].as_str().unwrap_or("a log\n").to_owned()),
                ),
                (Some(object), _) => (StatusCode::OK, object.clone()),
                (None, _) => status(404, "NotFound"),
            };
        }
        let prefix = match target.namespace {
            "" => format!("{}/", target.plural),
            namespace => key(target.plural, namespace, ""),
        };
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|(key, object)| key.starts_with(&prefix) && selected(object, query))
            .map(|(_, object)| object)
            .collect();
        (
            StatusCode::OK,
            json!({ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": items }),
        )
    }

    fn write(&mut self, method: &Method, target: &Target<'_>, body: Value) -> (StatusCode, Value) {
        let name = target
            .name
            .or(body["metadata"]["name"].as_str())
            .unwrap_or_default()
            .to_owned();
        let key = key(target.plural, target.namespace, &name);
        let old = self.objects.get(&key).cloned();
        if target.sub == Some("eviction") {
            return self.evict(&key, old, target.namespace, &body);
        }
        match (method.as_str(), old) {
            ("POST", Some(_)) => status(409, "AlreadyExists"),
            ("POST", None) => (StatusCode::CREATED, self.create(&key, body)),
            ("PATCH", None) if body["apiVersion"].is_string() => {
                (StatusCode::CREATED, self.create(&key, body))
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
                match target.sub {
                    Some("status") => merge(&mut old["status"], body["status"].clone()),
                    _ => merge(&mut old, without_preconditions(body)),
                }
                (StatusCode::OK, self.store(&key, old))
            }
        }
    }

    /// As the API does it: not another Pod, and not against a budget. A Pod that is on its way may be asked again.
    fn evict(&mut self, key: &str, pod: Option<Value>, namespace: &str, body: &Value) -> (StatusCode, Value) {
        let Some(pod) = pod else {
            return status(404, "NotFound");
        };
        let wanted = &body["deleteOptions"]["preconditions"]["uid"];
        if wanted.is_string() && *wanted != pod["metadata"]["uid"] {
            return status(409, "Conflict");
        }
        let prefix = format!("poddisruptionbudgets/{namespace}/");
        let holds = |budget: &Value| {
            let labels = budget["spec"]["selector"]["matchLabels"].as_object();
            labels.is_some_and(|labels| {
                labels
                    .iter()
                    .all(|(name, value)| pod["metadata"]["labels"][name] == *value)
            })
        };
        let of_pod = |(key, budget): &(&String, &mut Value)| key.starts_with(&prefix) && holds(budget);
        let mut budgets: Vec<(&String, &mut Value)> = self.objects.iter_mut().filter(of_pod).collect();
        match budgets.as_mut_slice() {
            [] => {}
            [(_, budget)] => match budget["status"]["disruptionsAllowed"].as_i64() {
                Some(allowed @ 1..) => budget["status"]["disruptionsAllowed"] = json!(allowed - 1),
                _ => {
                    let name = &budget["metadata"]["name"];
                    let cause = json!({ "reason": "DisruptionBudget", "message": format!("The disruption budget {name} needs 1 healthy pods and has 1 currently") });
                    let (code, mut answer) = status(429, "TooManyRequests");
                    answer["message"] =
                        json!("Cannot evict pod as it would violate the pod's disruption budget.");
                    answer["details"] = json!({ "causes": [cause] });
                    return (code, answer);
                }
            },
            [..] => {
                let (code, mut answer) = status(500, "InternalError");
                answer["message"] = json!(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                );
                return (code, answer);
            }
        }
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.evicted.push(uid);
        (StatusCode::CREATED, self.delete(key, pod))
    }

    fn create(&mut self, key: &str, mut object: Value) -> Value {
        self.version += 1;
        // The same in every life of the same world: names follow from UIDs.
        let times = self.made.entry(key.to_owned()).or_default();
        *times += 1;
        object["metadata"]["uid"] = json!(format!("{}-{times}", key.replace('/', "-")));
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["generation"] = json!(1);
        self.store(key, object)
    }

    fn store(&mut self, key: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let goes = object["metadata"]["deletionTimestamp"].is_string();
        let held = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|held| !held.is_empty());
        match goes && !held {
            true => drop(self.objects.remove(key)),
            false => drop(self.objects.insert(key.to_owned(), object.clone())),
        }
        object
    }

    fn delete(&mut self, key: &str, mut old: Value) -> Value {
        old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        self.store(key, old)
    }
}

/// True when the body names another UID or another version than the object has.
fn violates(old: &Value, body: &Value) -> bool {
    let asked = |field: &str| {
        let by_delete = &body["preconditions"][field];
        if by_delete.is_string() {
            by_delete.clone()
        } else {
            body["metadata"][field].clone()
        }
    };
    ["uid", "resourceVersion"]
        .iter()
        .any(|field| asked(field).is_string() && asked(field) != old["metadata"][*field])
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

/// `labelSelector=a%3Db` and `fieldSelector=spec.clusterName%3Da`; anything else selects all.
fn selected(object: &Value, query: &str) -> bool {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .all(|(kind, selector)| {
            let selector = selector
                .replace("%3D", "=")
                .replace("%2F", "/")
                .replace("%2C", ",");
            selector
                .split(',')
                .filter_map(|term| term.split_once('='))
                .all(|(name, value)| match kind {
                    "labelSelector" => object["metadata"]["labels"][name] == value,
                    "fieldSelector" => {
                        object.pointer(&format!("/{}", name.replace('.', "/"))) == Some(&json!(value))
                    }
                    _ => true,
                })
        })
}
