//! Writes the chart: `chart MANIFESTS`, in whose directory `chart` it is.

use std::path::PathBuf;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let manifests = std::env::args_os().nth(1).context("usage: chart MANIFESTS")?;
    let manifests = PathBuf::from(manifests);
    chart::write(&manifests.join("chart"), &chart::all(&manifests)?)
}
