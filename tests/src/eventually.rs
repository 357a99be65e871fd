//! Waiting until something holds, with a deadline, and with the last thing seen in the error.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How often is looked.
const INTERVAL: Duration = Duration::from_millis(300);

/// What one look found.
pub enum Look<T> {
    /// It holds.
    Done(T),
    /// Not yet; what was seen instead.
    Waiting(String),
}

/// Looks again and again until it holds. A look that fails counts as "not yet": the API may be restarting.
pub async fn eventually<T>(
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Result<Look<T>>,
) -> Result<T> {
    let until = Instant::now() + deadline;
    loop {
        let seen = match look().await {
            Ok(Look::Done(value)) => return Ok(value),
            Ok(Look::Waiting(seen)) => seen,
            Err(error) => format!("{error:#}"),
        };
        if Instant::now() >= until {
            bail!("{what} did not hold within {} s; last seen: {seen}", deadline.as_secs());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
