//! The way to the API of a Pod.

/// A client with the Pod's own token. Repeating is its caller's: one that the client does by itself knows no deadline.
pub(crate) async fn client() -> kube::Result<kube::Client> {
    let mut config = kube::Config::infer().await.map_err(kube::Error::InferConfig)?;
    config.default_retry = false;
    kube::Client::try_from(config)
}
