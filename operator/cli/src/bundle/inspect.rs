//! `wright bundle verify` and `wright bundle diff`

use std::path::PathBuf;
use std::process::ExitCode;

use ::bundle::diff::diff;
use ::bundle::index::Index;
use ::bundle::verify::verify;
use anyhow::Result;
use clap::Args;

use super::{existing, say_index};
use crate::progress::{Progress, bytes};

/// Compare every file with its digest, and say what machines would not find
#[derive(Debug, Args)]
pub struct Verify {
    /// The bundle's directory
    #[arg(default_value = "bundle")]
    directory: PathBuf,
    /// Fail unless the index has this SHA-256
    #[arg(long, value_name = "SHA256")]
    index_sha256: Option<String>,
}

impl Verify {
    /// Prints a line for each problem; the code is 1 if there is one.
    pub fn run(self) -> Result<ExitCode> {
        let bundle = existing(&self.directory)?;
        let bar = Progress::new().bar("verify");
        let mut report = verify(&bundle, |artifact| bar.at(&artifact.to_string()))?;
        drop(bar);
        if let Some(promised) = self.index_sha256.filter(|it| !it.eq_ignore_ascii_case(&report.index_sha256)) {
            report.problems.push(format!("the index has sha256 {}, and {promised} was promised", report.index_sha256));
        }
        for problem in &report.problems {
            println!("{problem}");
        }
        for file in &report.unlisted {
            println!("{file} is not in the index: `wright bundle prune {}` removes it", bundle.display());
        }
        let kubernetes = if report.kubernetes.is_empty() { "none".to_owned() } else { report.kubernetes.join(", ") };
        println!("{} artifacts, {}; Kubernetes: {kubernetes}", report.artifacts, bytes(report.bytes));
        say_index(&bundle, &report.index_sha256);
        match report.problems.len() {
            0 => println!("verified: every file has its digest, and nothing is missing"),
            count => println!("NOT VERIFIED: {count} problems"),
        }
        Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Say what differs between two bundles
#[derive(Debug, Args)]
pub struct Diff {
    /// A bundle's directory
    one: PathBuf,
    /// Another one's
    other: PathBuf,
}

impl Diff {
    /// Prints a line for each difference; the code is 1 if there is one.
    pub fn run(self) -> Result<ExitCode> {
        let found = diff(&Index::read(&self.one)?, &Index::read(&self.other)?);
        for difference in &found {
            println!("{difference}");
        }
        Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
