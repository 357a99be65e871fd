//! Puts back what was taken away.

use std::fs;
use std::path::Path;

use guard::network::{Defect, Wanted, setting_path};

use super::program::run;
use super::see::Rules;
use crate::state::replace;

/// Repairs one defect; the error is the reason why not.
pub fn repair(wanted: &Wanted, rules: &mut Rules, defect: &Defect) -> Result<(), String> {
    match defect {
        Defect::Setting { name, wanted, .. } => {
            let path = setting_path(name);
            fs::write(&path, format!("{wanted}\n")).map_err(|error| format!("failed to write {path}: {error}"))
        }
        Defect::Gateway { bridge, address } => {
            run("ip", &["link", "set", bridge, "up"])?;
            run("ip", &["address", "replace", address, "dev", bridge]).map(drop)
        }
        Defect::Route { pods, interface } => {
            let protocol = wanted.protocol.to_string();
            let replace = ["route", "replace", pods, "dev", interface, "scope", "link"];
            run("ip", &[&replace[..], &["proto", &protocol]].concat()).map(drop)
        }
        Defect::Rules => rules.make(wanted),
        Defect::File { path } => {
            let content = wanted.files.get(path).map_or("", String::as_str);
            let path = Path::new(path);
            let directory = path.parent().unwrap_or(Path::new("/"));
            fs::create_dir_all(directory)
                .map_err(|error| format!("failed to make {}: {error}", directory.display()))?;
            replace(path, content).map_err(|failure| failure.to_string())
        }
    }
}
