//! A brake: while a snapshot is read, its member keeps the pages that it is made of, and its database grows by what is
//! written meanwhile. A storage that is too slow must not fill a member up to its quota.

use std::time::Duration;

use etcd_client::Client;
use tokio::time::{sleep, timeout};

/// How often the member is asked.
const LOOK: Duration = Duration::from_secs(5);
/// An answer that does not come is waited for so long; the stream itself notices a member that is gone.
const ANSWER: Duration = Duration::from_secs(10);
/// A small database may grow by so much, in bytes.
const LEAST: u64 = 1 << 30;

/// Returns once the member's database has grown by too much since the snapshot was begun, and says by how much. Without
/// that it never returns.
pub async fn outgrown(mut client: Client, began: u64) -> String {
    loop {
        sleep(LOOK).await;
        // A failure is the stream's to tell.
        let Ok(Ok(status)) = timeout(ANSWER, client.status()).await else { continue };
        let size = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
        if let Some(problem) = too_much(began, size(status.db_size()), size(status.db_size_quota())) {
            return problem;
        }
    }
}

/// Why the database, of these sizes in bytes when the snapshot was begun and now, may not grow any more; `quota`: 0
/// where it is not known.
fn too_much(began: u64, now: u64, quota: u64) -> Option<String> {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    if now > began.saturating_add(LEAST.max(began / 4)) {
        return Some(format!("its database has grown from {} to {} meanwhile", mib(began), mib(now)));
    }
    // One that is full already is no reason to have no backup of it.
    let near = quota - quota / 10;
    (quota > 0 && began < near && now >= near)
        .then(|| format!("its database has grown to {}, and its quota is {}", mib(now), mib(quota)))
}

#[cfg(test)]
mod tests {
    use super::too_much;

    #[test]
    fn a_database_may_grow_by_a_quarter_or_a_gibibyte_and_not_up_to_its_quota() {
        const GIB: u64 = 1 << 30;
        let check = |began: u64, now: u64, quota: u64, expected: Option<&str>| {
            let found = too_much(began, now, quota);
            let fits = match (&found, expected) {
                (Some(found), Some(words)) => found.contains(words),
                (found, words) => found.is_none() && words.is_none(),
            };
            assert!(fits, "{began} {now} {quota}: {found:?}");
        };
        check(GIB, 2 * GIB, 0, None);
        check(GIB, 2 * GIB + 1, 0, Some("from 1024 MiB to 2048 MiB"));
        check(8 * GIB, 10 * GIB, 0, None);
        check(8 * GIB, 10 * GIB + 1, 0, Some("from 8192 MiB to 10240 MiB"));
        check(7 * GIB, 7 * GIB, 8 * GIB, None);
        check(7 * GIB, 7 * GIB + GIB / 2, 8 * GIB, Some("its quota is 8192 MiB"));
        check(8 * GIB, 8 * GIB, 8 * GIB, None);
        check(GIB, 0, 0, None);
        check(0, u64::MAX, u64::MAX, Some("has grown"));
    }
}
