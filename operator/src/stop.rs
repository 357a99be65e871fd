//! The request to stop, which ends everything that runs.

use tokio::sync::watch;

/// A request to stop that may come; clones hear the same one.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Nobody has asked yet; the sender does, by `true` or by being dropped.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Ends when the program is asked to stop.
    pub fn asked(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        let mut stop = self.0.clone();
        async move {
            // An error says that the sender is gone: then it is over, too.
            let _ = stop.wait_for(|stop| *stop).await;
        }
    }
}
