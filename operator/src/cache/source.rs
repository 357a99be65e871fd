//! Where a watch gets its objects from.

use std::sync::Arc;

use kube::Client;

use crate::events::Events;
use crate::stop::Stop;

/// Where watches get their objects from, where they report, and when they end.
pub struct Source {
    /// Client of the metadata cluster.
    pub client: Client,
    /// The one namespace that is watched; `None`: all.
    pub namespace: Option<String>,
    /// Where an object that cannot be decoded is reported.
    pub events: Arc<Events>,
    /// Ends the watches.
    pub stop: Stop,
}
