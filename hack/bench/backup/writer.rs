//! A client that writes all the while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::Client;
use tokio::task::JoinHandle;

/// Between two writes.
const PAUSE: Duration = Duration::from_millis(10);

/// Ends when it is dropped.
pub struct Writer {
    task: JoinHandle<()>,
    /// How long each write took, in milliseconds.
    took: Arc<Mutex<Vec<f64>>>,
}

impl Writer {
    pub fn start(mut client: Client) -> Self {
        let took = Arc::new(Mutex::new(Vec::new()));
        let of_task = took.clone();
        let task = tokio::spawn(async move {
            loop {
                let began = Instant::now();
                if client.put("/writer", "x".repeat(1024), None).await.is_ok() {
                    let took = began.elapsed().as_secs_f64() * 1000.0;
                    of_task.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { task, took }
    }

    /// The 99th percentile since it was asked before, in milliseconds.
    pub fn p99(&self) -> f64 {
        let mut took = std::mem::take(&mut *self.took.lock().unwrap_or_else(PoisonError::into_inner));
        took.sort_by(f64::total_cmp);
        took.get(took.len() * 99 / 100).copied().unwrap_or(f64::NAN)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
