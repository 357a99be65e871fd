//! A plane whose members have simulated nodes, kept for what others run against it, such as Karmada's own tests.

use std::future::pending;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Map, Value};

use super::kubelets::{Kubelets, Terminating};
use super::member::Large;
use super::plane::Plane;

/// Controllers of a member: all that Kubernetes runs by default but the one that waits for Leases of Nodes.
const CONTROLLERS: &str = "*,-node-lifecycle-controller";

/// What is kept.
#[derive(Args)]
pub struct Wish {
    /// How many members it has, all of them Push: m00, m01, ...
    #[arg(long, default_value_t = 2)]
    members: u8,
    /// How many simulated nodes each of them has
    #[arg(long, default_value_t = 10)]
    nodes: usize,
    /// A file with fields of the plane's spec, as JSON
    #[arg(long)]
    spec: Option<PathBuf>,
    /// Where host.kubeconfig, plane.kubeconfig and a kubeconfig of each member are written
    directory: PathBuf,
}

/// Makes it, writes the kubeconfigs, and keeps it until this is dropped.
pub async fn run(operator: Option<&Path>, wish: &Wish) -> Result<()> {
    ensure!(wish.members > 0, "--members is at least 1");
    let fields = wish.spec.as_deref().map_or_else(|| Ok(Map::new()), fields)?;
    let write = |name: &str, kubeconfig: &str| {
        let file = wish.directory.join(format!("{name}.kubeconfig"));
        std::fs::write(&file, kubeconfig).with_context(|| format!("failed to write {}", file.display()))
    };
    std::fs::create_dir_all(&wish.directory)?;
    let plane = Plane::start(operator, fields).await?;
    write("host", &plane.host_kubeconfig()?)?;
    write("plane", &plane.kubeconfig().await?)?;
    let mut kept = Vec::new();
    let names: Vec<String> = (0..wish.members).map(|number| format!("m{number:02}")).collect();
    for name in &names {
        let member = Large::start(name, CONTROLLERS).await?;
        let kubeconfig = member.kubeconfig()?;
        write(name, &kubeconfig)?;
        plane.give(name, &kubeconfig).await?;
        let kubelets = Kubelets::start(&member.client(), wish.nodes).await?;
        let terminating = Terminating::start(member.client());
        kept.push((member, kubelets, terminating));
    }
    super::join::join(&plane, &names).await?;
    println!("{} have joined; the kubeconfigs are in {}", names.join(", "), wish.directory.display());
    pending().await
}

fn fields(file: &Path) -> Result<Map<String, Value>> {
    let text = std::fs::read(file).with_context(|| format!("failed to read --spec {}", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("--spec {} is no JSON object", file.display()))
}
