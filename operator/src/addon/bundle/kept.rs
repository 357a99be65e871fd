//! What was read of bundles: indexes for a minute, or for good if their digest is given, and files by their digest.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::download::Server;

/// How long an index is believed that nobody has given the digest of.
const BELIEVED: Duration = Duration::from_secs(60);
/// The most that is kept, in bytes; then all is read anew.
const MOST: usize = 64 << 20;

/// What is kept of bundles; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Bundles(Arc<Mutex<HashMap<String, Vec<Kept>>>>);

/// What a server has given for a URL. Others, with another login, may not see it.
struct Kept {
    server: Server,
    bytes: Vec<u8>,
    sha256: String,
    read_at: Instant,
}

impl Bundles {
    /// The index at this URL, if it need not be asked for.
    pub(super) fn fresh(&self, url: &str, server: &Server, digest: Option<&str>) -> Option<Vec<u8>> {
        let is_fresh = |kept: &Kept| digest.is_some() || kept.read_at.elapsed() < BELIEVED;
        self.find(url, server, digest, is_fresh)
    }

    /// The index that was there when the server last answered.
    pub(super) fn known(&self, url: &str, server: &Server, digest: Option<&str>) -> Option<Vec<u8>> {
        self.find(url, server, digest, |_| true)
    }

    /// The file at this URL, with this digest.
    pub(super) fn file(&self, url: &str, server: &Server, sha256: &str) -> Option<Vec<u8>> {
        self.find(url, server, Some(sha256), |_| true)
    }

    fn find(&self, url: &str, server: &Server, digest: Option<&str>, is: impl Fn(&Kept) -> bool) -> Option<Vec<u8>> {
        let all = self.0.lock();
        let mut of_url = all.get(url)?.iter();
        let same =
            |kept: &&Kept| kept.server == *server && digest.is_none_or(|digest| kept.sha256 == digest) && is(kept);
        of_url.find(same).map(|kept| kept.bytes.clone())
    }

    /// Keeps what was read, an index or a file.
    pub(super) fn keep(&self, url: &str, server: &Server, bytes: &[u8], sha256: &str) {
        let mut all = self.0.lock();
        let size: usize = all.values().flatten().map(|kept| kept.bytes.len()).sum();
        if size + bytes.len() > MOST {
            all.clear();
        }
        let of_url = all.entry(url.to_owned()).or_default();
        // What was there before is asked for by nobody who has not given its digest, and by them it is read again.
        of_url.retain(|kept| kept.server != *server);
        let (server, sha256) = (server.clone(), sha256.to_owned());
        of_url.push(Kept { server, bytes: bytes.to_vec(), sha256, read_at: Instant::now() });
    }
}
