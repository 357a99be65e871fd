//! An API server for tests, in memory: it keeps objects, records every request, and can be cut off after a write. It
//! knows no schema and runs no controller; what a cluster would do, the test does by [`FakeApi::edit`].

mod apply;
mod discovery;
mod eviction;
mod kept;
mod rights;
mod state;
mod target;
mod watches;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use clap::{Args, FromArgMatches};
use http::{Method, Request, Response, StatusCode};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::service_fn;

use crate::context::Context;
use crate::decoding::Decoded;
use crate::metrics::Metrics;
use crate::settings::Settings;
use kept::Kept;
use state::State;
use target::{Target, is_watch, key, reason_of, status};
use watches::Watches;

/// How a server that is cut off treats the write at which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It does not arrive.
    Before,
    /// It is done, and the answer is lost.
    After,
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
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move {
                let (parts, body) = request.into_parts();
                if let Some(events) = api.watch(&parts.uri.to_string()) {
                    return Ok(Response::new(events));
                }
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

    /// The same for an operator that is started with these arguments, too.
    pub(crate) fn context_with(&self, arguments: &[&str]) -> Arc<Context> {
        self.running_with(arguments).0
    }

    /// The same for controllers that run: until the sender is gone.
    pub(crate) fn running(&self) -> (Arc<Context>, tokio::sync::watch::Sender<bool>) {
        self.running_with(&[])
    }

    fn running_with(&self, arguments: &[&str]) -> (Arc<Context>, tokio::sync::watch::Sender<bool>) {
        let command = Settings::augment_args(clap::Command::new("operator"));
        let arguments = ["operator", "--message-interval-seconds=0"].iter().chain(arguments);
        let settings = Settings::from_arg_matches(&command.get_matches_from(arguments)).unwrap();
        Context::new(self.client(), settings, Metrics::new())
    }

    /// Another server with the same objects: what is done to one is not done to the other, and seen by none of its
    /// watches.
    pub(crate) fn copy(&self) -> Self {
        let mut state = self.lock().clone();
        state.watches = state.watches.map(|_| Watches::default());
        Self { state: Arc::new(Mutex::new(state)), happenings: Arc::default() }
    }

    /// It serves watches from now on: until then each ends at once.
    pub(crate) fn serve_watches(&self) {
        self.lock().watches = Some(Watches::default());
    }

    /// What a watch is answered; none: this is no watch, or none is served.
    fn watch(&self, uri: &str) -> Option<Body> {
        let (path, query) = uri.split_once('?')?;
        let target = Target::parse(path).filter(|_| is_watch(query))?;
        // What is refused is answered as all else.
        if !rights::is_granted(&Method::GET, path, &target, query) {
            return None;
        }
        let mut state = self.lock();
        let events = state.watches.as_mut()?.begin(&target, query);
        state.asked += 1;
        Some(events)
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
        let mut object = state.objects[key].to_value();
        change(&mut object);
        state.store(key, object);
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.lock().objects.get(key).map(Kept::to_value)
    }

    /// Everything of a kind, as the cache would get it.
    pub(crate) fn decoded<K>(&self, plural: &str) -> Vec<Arc<Decoded<K>>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.kept(plural).iter().map(Kept::decoded).collect()
    }

    /// Everything of a kind, all of which can be decoded.
    pub(crate) fn list<K>(&self, plural: &str) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        let object = |decoded: Arc<Decoded<K>>| match &*decoded {
            Decoded::Object(object) => object.clone(),
            Decoded::Undecodable { why, .. } => panic!("{why:?}"),
        };
        self.decoded(plural).into_iter().map(object).collect()
    }

    /// Everything of a kind, as it is kept.
    pub(crate) fn values(&self, plural: &str) -> Vec<Value> {
        self.kept(plural).iter().map(Kept::to_value).collect()
    }

    fn kept(&self, plural: &str) -> Vec<Kept> {
        let prefix = format!("{plural}/");
        let state = self.lock();
        let of_kind = state.objects.iter().filter(|(key, _)| key.starts_with(&prefix));
        of_kind.map(|(_, object)| object.clone()).collect()
    }

    /// Names of all objects but Events, which are told at best once.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().objects.keys().filter(|key| !key.starts_with("events/")).cloned().collect()
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

    /// So many requests that begin like this (`<METHOD> <plural>/<namespace>/<name>[/<subresource>]`) are answered with
    /// a failure of this code, with these details.
    pub(crate) fn refuse(&self, request: &str, times: usize, code: u16, details: Value) {
        let (_, mut answer) = status(code, reason_of(code));
        answer["details"] = details;
        self.lock().refusals.push((request.to_owned(), times, answer));
    }

    /// It answers everything again.
    pub(crate) fn heal(&self) {
        let mut state = self.lock();
        (state.cut, state.conflicts) = (None, None);
        state.refusals.clear();
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

    /// Whether conflicts or failures are being answered.
    pub(crate) fn is_disturbed(&self) -> bool {
        let state = self.lock();
        let refuses = state.refusals.iter().any(|(_, times, _)| *times > 0);
        refuses || matches!(state.conflicts, Some((at, 1..)) if state.writes >= at)
    }

    /// Raises the version that is given out next, as a restored backup does.
    pub(crate) fn raise(&self, by: u64) {
        self.lock().version += by;
    }

    /// Takes an object away without a trace, as a restored backup without it does.
    pub(crate) fn remove(&self, key: &str) {
        self.lock().objects.remove(key);
    }

    /// Deletes what has lost its owners, as a garbage collector does.
    pub(crate) fn collect_garbage(&self) {
        let mut state = self.lock();
        loop {
            let uids: Vec<Value> = state.objects.values().map(|object| object["metadata"]["uid"].clone()).collect();
            let orphan = |object: &Value| {
                let owners = object["metadata"]["ownerReferences"].as_array();
                let owners = owners.filter(|owners| !owners.is_empty());
                let going = object["metadata"]["deletionTimestamp"].is_string();
                !going && owners.is_some_and(|owners| owners.iter().all(|owner| !uids.contains(&owner["uid"])))
            };
            let found = state.objects.iter().find(|(_, object)| orphan(object));
            let Some((key, object)) = found.map(|(key, object)| (key.clone(), object.to_value())) else {
                return;
            };
            state.delete(&key, object);
        }
    }

    /// `<METHOD> <plural>/<namespace>/<name>[/<subresource>]` of every write, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    /// Requests so far, reads and dry runs among them.
    pub(crate) fn asked(&self) -> usize {
        self.lock().asked
    }

    fn answer(&self, method: &Method, uri: &str, body: Value) -> (StatusCode, Value) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        self.lock().asked += 1;
        if path == "/readyz" {
            return self.lock().refuse("GET /readyz").unwrap_or((StatusCode::OK, "ok".into()));
        }
        if let Some(kinds) = discovery::kinds(path).filter(|_| *method == Method::GET) {
            return (StatusCode::OK, kinds);
        }
        let Some(target) = Target::parse(path) else {
            return status(404, "NotFound");
        };
        let name = target.name.or(body["metadata"]["name"].as_str()).unwrap_or_default();
        let sub = target.sub.map(|sub| format!("/{sub}")).unwrap_or_default();
        let asked = format!("{method} {}/{}/{name}{sub}", target.plural, target.namespace);
        self.let_happen(&asked);
        let mut state = self.lock();
        if let Some(answer) = state.refuse(&asked) {
            return answer;
        }
        if !rights::is_granted(method, path, &target, query) {
            return status(403, "Forbidden");
        }
        if *method == Method::GET {
            return state.read(&target, query);
        }
        if query.contains("dryRun=All") {
            let mut dry = state.clone();
            dry.watches = None;
            return dry.write(method, &target, query, body);
        }
        if target.plural == "events" {
            return state.write(method, &target, query, body);
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
        let answer = state.write(method, &target, query, body);
        match state.cut {
            Some((at, Cut::After)) if number == at => status(503, "ServiceUnavailable"),
            _ => answer,
        }
    }

    fn let_happen(&self, asked: &str) {
        let mut happenings = self.happenings();
        let place = happenings.iter().position(|(request, _)| asked.starts_with(request.as_str()));
        let due = place.map(|place| happenings.remove(place));
        drop(happenings);
        if let Some((_, happens)) = due {
            happens(self);
        }
    }
}
