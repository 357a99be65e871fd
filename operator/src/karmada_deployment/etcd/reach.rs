//! How the Pods of an etcd are reached.

/// How Pods are reached.
#[derive(Clone, Default)]
pub(crate) enum Reach {
    /// By a port that the host's API forwards.
    #[default]
    Forwarded,
    /// Not at all: this answers in their place.
    #[cfg(test)]
    StandIn(axum::Router),
}
