//! What planes on machines are made of: the lab's bundle with Karmada's programs, or with what stands in for them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::Result;
use tempfile::TempDir;

use super::definitions::stand_ins;
use super::given::Given;
use super::{FORMER, VERSION};
use crate::bundle::Bundle;

/// All that a plane has beside Kubernetes' own.
pub(super) const PROGRAMS: [&str; 7] = [
    "karmada-aggregated-apiserver",
    "karmada-controller-manager",
    "karmada-descheduler",
    "karmada-metrics-adapter",
    "karmada-scheduler",
    "karmada-search",
    "karmada-webhook",
];
/// What stands in for each of them.
const STAND_IN: &str = include_str!("stand_in.py");

/// The bundle of planes on machines, for as long as this is kept.
pub struct OnMachines {
    /// With the programs and the definitions of each of `versions`.
    pub bundle: Bundle,
    /// The versions that planes may have, the older first.
    pub versions: Vec<&'static str>,
    /// Whether the programs are Karmada's own: else nothing is proved of Karmada but units, ports, names and order.
    pub are_karmadas: bool,
}

impl OnMachines {
    /// Serves it at a port. Karmada's programs are in it where they are given.
    pub async fn serve(port: u16) -> Result<Self> {
        let given = Given::from_env().ok();
        let folder = TempDir::new()?;
        match &given {
            Some(given) => symlink(given.directory(), folder.path().join("karmada"))?,
            None => write_stand_ins(&folder.path().join("karmada"))?,
        }
        let is_there = |version: &&str| given.as_ref().is_none_or(|given| given.has(version));
        let versions: Vec<&'static str> = [FORMER, VERSION].into_iter().filter(is_there).collect();
        let arch = lab::images::architecture();
        let programs = ["programs", &folder.path().display().to_string(), "--arch", arch].map(str::to_owned);
        let mut additions = vec![programs.to_vec()];
        for version in &versions {
            let text = given.as_ref().map_or_else(|| Ok(stand_ins()), |given| given.definitions(version))?;
            let file = folder.path().join(format!("{version}.yaml"));
            fs::write(&file, text)?;
            additions.push(vec!["manifests".into(), format!("karmada-crds={version}"), file.display().to_string()]);
        }
        let bundle = Bundle::extended(port, &additions).await?;
        Ok(Self { bundle, versions, are_karmadas: given.is_some() })
    }
}

fn write_stand_ins(directory: &Path) -> Result<()> {
    for version in [FORMER, VERSION] {
        let folder = directory.join(version).join("bin");
        fs::create_dir_all(&folder)?;
        for program in PROGRAMS {
            let path = folder.join(program);
            fs::write(&path, STAND_IN)?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}
