//! What is asked of a bundle.

use crds::addon::BundlePlace;
use crds::chart::LARGEST_ARCHIVE;

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Manifests, as text.
    Manifests,
    /// The archive of a chart.
    Chart,
}

impl EntryKind {
    /// As the index says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manifests => "manifests",
            Self::Chart => "chart",
        }
    }

    /// The most that a file of it has, in bytes.
    pub fn largest(self) -> u64 {
        match self {
            Self::Manifests => 8 << 20,
            Self::Chart => LARGEST_ARCHIVE as u64,
        }
    }
}

/// The entry that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryWanted {
    /// The field that asks for it, as messages have it.
    pub field: &'static str,
    /// Where the bundle is.
    pub place: BundlePlace,
    /// What it is.
    pub kind: EntryKind,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl EntryWanted {
    /// URL of the bundle, without a slash at its end.
    pub fn base(&self) -> &str {
        self.place.url.trim_end_matches('/')
    }

    /// URL of the index.
    pub fn index_url(&self) -> String {
        format!("{}/index.json", self.base())
    }

    /// The entry in words: `manifests metrics-server 0.8.1`.
    pub fn title(&self) -> String {
        format!("{} {} {}", self.kind.name(), self.name, self.version)
    }
}

/// A version without the `v` before it: with one or without, it is the same.
pub(super) fn plain(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}
