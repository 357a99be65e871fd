//! A machine as its owner has it: on a network of its own for management, which another machine leads to, and with a
//! user that has a password and sudo.

use anyhow::{Result, ensure};
use e2e::scenario::Scenario;
use lab::Lab;
use lab::machines::Machine;
use serde_json::json;

/// Addresses on the network for management: of the machine that leads there, and of the other one.
const BASTION: &str = "172.30.1.2";
const ADDRESS: &str = "172.30.1.3";
const USER: &str = "fleet";
const PASSWORD: &str = "correct horse battery";

/// Gives both an interface on that network, and the second one the user; its Host says so.
pub async fn is_over_a_bastion_by_password(scenario: &Scenario, bastion: &Machine, machine: &Machine) -> Result<()> {
    for (machine, address) in [(bastion, BASTION), (machine, ADDRESS)] {
        let interface = format!(
            "ip link add mgmt0 link host0 type macvlan mode bridge && ip address add {address}/24 dev mgmt0 && \
             ip link set mgmt0 up"
        );
        scenario.ssh(machine, &interface).await?;
    }
    let user = format!(
        "useradd --create-home --shell /bin/bash {USER} && echo '{USER}:{PASSWORD}' | chpasswd && \
         echo '{USER} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{USER} && \
         echo 'PasswordAuthentication yes' > /etc/ssh/sshd_config.d/05-{USER}.conf && systemctl reload ssh"
    );
    scenario.ssh(machine, &user).await?;
    let login = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": scenario.name, "name": USER},
        "type": "kubernetes.io/basic-auth", "stringData": {"username": USER, "password": PASSWORD},
    });
    scenario.apply(&login).await?;
    let mut host = Lab::host_manifest(machine, &scenario.name);
    host["spec"]["address"] = json!(ADDRESS);
    host["spec"]["internalAddress"] = json!(machine.address());
    host["spec"]["ssh"]["user"] = json!(USER);
    host["spec"]["ssh"]["become"] = json!(true);
    host["spec"]["ssh"]["credentialsRef"] = json!({"name": USER});
    host["spec"]["ssh"]["bastionRef"] = json!({"name": bastion.name()});
    scenario.apply(&host).await.map(drop)
}

/// Whoever installed the machine came from the bastion, with the password.
pub async fn was_over_the_bastion(scenario: &Scenario, machine: &Machine) -> Result<()> {
    let said = scenario.ssh(machine, "journalctl --quiet --no-pager -t sshd -t sshd-session | grep Accepted").await?;
    let wanted = format!("Accepted password for {USER} from {BASTION}");
    ensure!(said.contains(&wanted), "nobody logged in by {wanted:?}: {said}");
    Ok(())
}
