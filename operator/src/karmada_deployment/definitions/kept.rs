//! What was parsed of files with definitions.

use std::sync::Arc;

use parking_lot::Mutex;
use plan::cluster_addon::documents::Document;

/// Files that are kept: planes of a few versions.
const MOST: usize = 4;

type Parsed = (String, Arc<Vec<Document>>);

/// The documents of each file, by its SHA-256; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Definitions(Arc<Mutex<Vec<Parsed>>>);

impl Definitions {
    /// Those of a file.
    pub(super) fn find(&self, sha256: &str) -> Option<Arc<Vec<Document>>> {
        self.0.lock().iter().find(|(known, _)| known == sha256).map(|(_, documents)| documents.clone())
    }

    /// Keeps those of a file; of too many the oldest go.
    pub(super) fn keep(&self, sha256: String, documents: Arc<Vec<Document>>) {
        let mut kept = self.0.lock();
        if kept.len() >= MOST {
            kept.remove(0);
        }
        kept.push((sha256, documents));
    }
}
