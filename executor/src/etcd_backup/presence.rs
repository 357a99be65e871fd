//! Whether the program that makes or stages a backup is still there: it locks the file with its settings for as long as
//! it lives. A run that was stopped waits for it to take back what it had begun, before its Pod ends.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{settings, staging_settings};

/// Longer than it takes to give a backup up.
const PATIENCE: Duration = Duration::from_secs(25);
const ROUND: Duration = Duration::from_millis(50);

/// Says that this process is there, for as long as the file lives.
pub(super) fn hold(directory: &Path, settings: &str) -> io::Result<File> {
    let file = File::open(directory.join(settings))?;
    file.lock_shared()?;
    Ok(file)
}

/// Waits until nobody works in a directory any more; false after 25 s. Without settings there is nobody.
pub async fn gone(directory: &Path) -> bool {
    let until = Instant::now() + PATIENCE;
    for settings in [settings::FILE, staging_settings::FILE] {
        let Ok(file) = File::open(directory.join(settings)) else { continue };
        while file.try_lock().is_err() {
            if Instant::now() >= until {
                return false;
            }
            sleep(ROUND).await;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{gone, hold, settings, staging_settings};

    #[tokio::test]
    async fn whoever_is_there_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        assert!(gone(place.path()).await);
        for file in [settings::FILE, staging_settings::FILE] {
            std::fs::write(place.path().join(file), "{}").unwrap();
            let held = hold(place.path(), file).unwrap();
            let waiting = gone(place.path());
            tokio::pin!(waiting);
            assert!(tokio::time::timeout(Duration::from_millis(200), &mut waiting).await.is_err());
            drop(held);
            assert!(waiting.await);
        }
    }
}
