//! `wright bundle add chart` and `wright bundle add manifests`

use std::path::PathBuf;
use std::process::ExitCode;

use ::bundle::addons::{AddonEntry, chart, manifests, write};
use ::bundle::index::Index;
use anyhow::Result;
use clap::Args;

use super::signature::Signer;
use super::{clear_partial, hold, parse_component, say_index};

/// Take charts' archives
#[derive(Debug, Args)]
pub struct AddChart {
    /// Archives, as `helm package` and `helm pull` write them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: AddonTarget,
}

/// Take manifests
#[derive(Debug, Args)]
pub struct AddManifests {
    /// What an Addon names them by
    #[arg(value_parser = parse_component, value_name = "NAME=VERSION")]
    component: (String, String),
    /// YAML, in the order in which it is applied
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// They are templates: what is in them is not looked at before they are rendered
    #[arg(long)]
    template: bool,
    #[command(flatten)]
    target: AddonTarget,
}

/// What it is added to, and who has added it
#[derive(Debug, Args)]
pub struct AddonTarget {
    /// The bundle's directory
    #[arg(long, default_value = "bundle", value_name = "DIRECTORY")]
    bundle: PathBuf,
    /// A private key (PEM, as `openssl genpkey -algorithm ed25519` writes it) that signs what is added
    #[arg(long, value_name = "FILE")]
    signing_key: Option<PathBuf>,
}

impl AddChart {
    /// Adds them, and writes the index.
    pub fn run(self) -> Result<ExitCode> {
        let entries = self.files.iter().map(|file| chart(file)).collect::<Result<Vec<_>>>()?;
        add(&self.target, entries)
    }
}

impl AddManifests {
    /// Adds them, and writes the index.
    pub fn run(self) -> Result<ExitCode> {
        let (name, version) = &self.component;
        add(&self.target, vec![manifests(name, version, &self.files, self.template)?])
    }
}

fn add(target: &AddonTarget, entries: Vec<AddonEntry>) -> Result<ExitCode> {
    let bundle = &target.bundle;
    let signer = target.signing_key.as_deref().map(Signer::read).transpose()?;
    let alone = hold(bundle)?;
    let mut index = Index::read_or_new(bundle)?;
    for mut entry in entries {
        if let Some(signer) = &signer {
            entry.artifact.signature = signer.sign(&entry.artifact);
        }
        println!("+ {}", entry.artifact);
        // What is there is compared before it is overwritten.
        index.insert(entry.artifact.clone())?;
        write(&entry, bundle)?;
    }
    let digest = index.write(bundle)?;
    clear_partial(bundle)?;
    drop(alone);
    if let Some(signer) = &signer {
        print!("signedBy:\n{}", signer.public_key());
    }
    say_index(bundle, &digest);
    Ok(ExitCode::SUCCESS)
}
