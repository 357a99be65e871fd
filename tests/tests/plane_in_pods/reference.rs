//! The same by upstream's own installer, on the same host with the same images: `karmadactl init`, where it is given.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::karmada::VERSION;
use e2e::karmada::given::Given;
use e2e::karmada::in_pods::InPods;
use e2e::objects::VERSION as KUBERNETES;
use e2e::scenario::Scenario;
use tokio::process::Command;

use super::host::HostCluster;

const NAMESPACE: &str = "reference";
const READY: Duration = Duration::from_secs(300);

/// How long it takes until all of it is there; none where it is not given. It stays: the host is not needed any more.
pub async fn init(scenario: &Scenario, programs: &InPods, host: &HostCluster<'_>) -> Result<Option<Duration>> {
    let given = Given::from_env()?;
    let Some(karmadactl) = given.karmadactl() else { return Ok(None) };
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, scenario.kubeconfig("host").await?)?;
    let address = host.machine.address().to_string();
    let mut arguments = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--namespace={NAMESPACE}"),
        format!("--karmada-data={}", folder.path().display()),
        format!("--karmada-pki={}", folder.path().join("pki").display()),
        format!("--crds={}", given.definitions_archive(VERSION).display()),
        "--etcd-storage-mode=hostPath".to_owned(),
        format!("--etcd-data=/srv/{NAMESPACE}"),
        format!("--karmada-apiserver-advertise-address={address}"),
        format!("--cert-external-ip={address}"),
        format!("--wait-component-ready-timeout={}", READY.as_secs()),
    ];
    arguments.extend(images(programs));
    let begun = Instant::now();
    let ran = Command::new(karmadactl).arg("init").args(&arguments).kill_on_drop(true).output();
    let output = tokio::time::timeout(READY, ran).await.context("karmadactl init does not end")??;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "karmadactl init: {}", String::from_utf8_lossy(&said));
    Ok(Some(begun.elapsed()))
}

/// Each component's image, as the plane beside it has them.
fn images(programs: &InPods) -> impl Iterator<Item = String> {
    let (registry, etcd) = (programs.registry.clone(), programs.etcd);
    let of_karmada = ["scheduler", "controller-manager", "webhook", "aggregated-apiserver"]
        .map(|name| format!("--karmada-{name}-image={registry}/karmada/karmada-{name}:v{VERSION}"));
    let of_kubernetes = [("apiserver", "kube-apiserver"), ("kube-controller-manager", "kube-controller-manager")]
        .map(|(flag, image)| format!("--karmada-{flag}-image={registry}/kubernetes/{image}:v{KUBERNETES}"));
    let of_etcd = format!("--etcd-image={registry}/kubernetes/etcd:{etcd}");
    of_karmada.into_iter().chain(of_kubernetes).chain([of_etcd])
}
