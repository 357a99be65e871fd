//! Watches, where they are served: of what changes after they begin.

use std::convert::Infallible;

use axum::body::Body;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use serde_json::{Value, json};

use super::target::{Target, key, selected};

/// Those that are under way.
#[derive(Clone, Default)]
pub(super) struct Watches(Vec<Watch>);

#[derive(Clone)]
struct Watch {
    /// How the keys of its objects begin.
    prefix: String,
    query: String,
    events: UnboundedSender<Result<String, Infallible>>,
}

impl Watches {
    /// A new one, and what it is answered.
    pub fn begin(&mut self, target: &Target<'_>, query: &str) -> Body {
        let prefix = match target.namespace {
            "" => format!("{}/", target.plural),
            namespace => key(target.plural, namespace, ""),
        };
        let (events, body) = unbounded();
        self.0.push(Watch { prefix, query: query.to_owned(), events });
        Body::from_stream(body)
    }

    /// An object has changed.
    pub fn tell(&mut self, key: &str, type_: &str, object: &Value) {
        let line = format!("{}\n", json!({ "type": type_, "object": object }));
        self.0.retain(|watch| {
            let is_watched = key.starts_with(&watch.prefix) && selected(object, &watch.query);
            !is_watched || watch.events.unbounded_send(Ok(line.clone())).is_ok()
        });
    }
}
