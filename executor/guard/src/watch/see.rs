//! The kernel's state of the Pod network.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use guard::network::{Observed, Wanted, setting_path};

use super::program::run;

/// Everything but the rules. The calling process's own view: `/proc/net` is of its network namespace.
pub fn see(wanted: &Wanted, settings: &BTreeMap<String, String>) -> Observed {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let setting = |name: &String| {
        let text = fs::read_to_string(setting_path(name)).ok()?;
        Some((name.clone(), text.trim().to_owned()))
    };
    let missing = wanted.files.keys().filter(|path| !Path::new(path).exists());
    Observed {
        routes: read("/proc/net/route"),
        addresses: read("/proc/net/fib_trie"),
        links: read("/proc/net/dev"),
        settings: settings.keys().filter_map(setting).collect(),
        rules_differ: None,
        missing: missing.cloned().collect(),
    }
}

/// Our table of nft as it was after the script had made it: only nft knows how it writes what it was given.
#[derive(Debug, Default)]
pub struct Rules {
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    listing: String,
    /// When the script was written that made it.
    script: Option<SystemTime>,
}

impl Rules {
    /// Whether the table differs from what the script made.
    pub fn differ(&mut self, wanted: &Wanted) -> Result<bool, String> {
        let script = written(wanted);
        if self.made.as_ref().is_none_or(|made| made.script != script) {
            self.make(wanted)?;
        }
        // A table that is not there cannot be listed.
        Ok(listing().ok().as_ref() != self.made.as_ref().map(|made| &made.listing))
    }

    /// Runs the script, which changes nothing where all is as it should be, and learns what it makes.
    pub fn make(&mut self, wanted: &Wanted) -> Result<(), String> {
        let script = written(wanted);
        run(&wanted.script, &[])?;
        self.made = Some(Made { listing: listing()?, script });
        Ok(())
    }
}

fn written(wanted: &Wanted) -> Option<SystemTime> {
    fs::metadata(&wanted.script).and_then(|file| file.modified()).ok()
}

/// The table without its counters.
fn listing() -> Result<String, String> {
    run("nft", &["--stateless", "list", "table", "ip", "clusterwright"])
}
