//! The lab's network: one bridge that the host, the machines and the metadata cluster's nodes share.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{Invocation, run};

/// The bridge's name.
pub const BRIDGE: &str = "cwlab0";
/// The host's address on the bridge.
pub const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 1);
/// The bridge's hardware address. One that is not given is the lowest of the machines': it changes when they come and go,
/// and everybody's ways to the host are wrong until they ask anew, which takes half a minute.
const HARDWARE_ADDRESS: &str = "02:00:ac:1e:00:01";
/// Length of the network's prefix.
pub const PREFIX_LENGTH: u8 = 24;
/// The network that machines live in.
pub const MACHINE_NETWORK: &str = "172.30.0.0/24";
/// The network of the metadata cluster's Pods.
pub const POD_NETWORK: &str = "10.200.0.0/16";
/// Marks each firewall rule of the lab, so that teardown finds its own and no other.
const COMMENT: &str = "clusterwright-lab";

/// What every machine shares with the host and would use up at the host's defaults: all of them run as the same uid 0.
const HOST_LIMITS: [(&str, u64); 5] = [
    ("fs/inotify/max_user_instances", 8192),
    ("fs/inotify/max_user_watches", 1_048_576),
    ("kernel/keys/maxkeys", 20_000),
    ("kernel/keys/maxbytes", 2_000_000),
    ("vm/max_map_count", 262_144),
];

/// Makes the bridge, the forwarding and the limits; what is there already stays.
pub fn up() -> Result<()> {
    for (key, least) in HOST_LIMITS {
        raise(key, least)?;
    }
    if !exists() {
        run(
            "ip",
            [
                "link",
                "add",
                BRIDGE,
                "address",
                HARDWARE_ADDRESS,
                "type",
                "bridge",
                "stp_state",
                "0",
                "forward_delay",
                "0",
            ],
        )
        .context("failed to create the lab's bridge")?;
    }
    let address = format!("{HOST_ADDRESS}/{PREFIX_LENGTH}");
    run("ip", ["address", "replace", address.as_str(), "dev", BRIDGE])
        .context("failed to address the bridge")?;
    run("ip", ["link", "set", BRIDGE, "up"]).context("failed to start the bridge")?;
    set("net/ipv4/ip_forward", "1")?;
    // Pods of the second metadata node answer over another way than the reverse path would guess.
    set(&format!("net/ipv4/conf/{BRIDGE}/rp_filter"), "0")?;
    // Machines are a network of their own: the host's Service rules are not for the frames between them.
    if Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists() {
        set("net/bridge/bridge-nf-call-iptables", "0")?;
    }
    for rule in rules() {
        ensure_rule(&rule)?;
    }
    Ok(())
}

/// Removes the bridge and the firewall rules; the raised limits stay, they harm nobody.
pub fn down() -> Result<()> {
    for rule in rules() {
        while iptables("-C", &rule).output()?.ok() {
            iptables("-D", &rule)
                .run()
                .context("failed to remove a firewall rule")?;
        }
    }
    if exists() {
        run("ip", ["link", "delete", BRIDGE]).context("failed to delete the lab's bridge")?;
    }
    Ok(())
}

/// Whether the bridge is there.
pub fn exists() -> bool {
    Path::new("/sys/class/net").join(BRIDGE).exists()
}

struct Rule {
    table: &'static str,
    chain: &'static str,
    words: Vec<&'static str>,
}

fn rules() -> Vec<Rule> {
    let rule = |table, chain, words: &[&'static str]| Rule {
        table,
        chain,
        words: words.to_vec(),
    };
    vec![
        rule(
            "nat",
            "POSTROUTING",
            &["-s", MACHINE_NETWORK, "!", "-o", BRIDGE, "-j", "MASQUERADE"],
        ),
        rule(
            "nat",
            "POSTROUTING",
            &["-s", POD_NETWORK, "!", "-d", POD_NETWORK, "-j", "MASQUERADE"],
        ),
        rule("filter", "FORWARD", &["-i", BRIDGE, "-j", "ACCEPT"]),
        rule("filter", "FORWARD", &["-o", BRIDGE, "-j", "ACCEPT"]),
        rule("filter", "FORWARD", &["-s", POD_NETWORK, "-j", "ACCEPT"]),
        rule("filter", "FORWARD", &["-d", POD_NETWORK, "-j", "ACCEPT"]),
    ]
}

fn ensure_rule(rule: &Rule) -> Result<()> {
    if !iptables("-C", rule).output()?.ok() {
        iptables("-I", rule)
            .run()
            .context("failed to add a firewall rule")?;
    }
    Ok(())
}

fn iptables(verb: &str, rule: &Rule) -> Invocation {
    Invocation::new("iptables")
        .args(["-w", "-t", rule.table, verb, rule.chain])
        .args(&rule.words)
        .args(["-m", "comment", "--comment", COMMENT])
}

fn set(key: &str, value: &str) -> Result<()> {
    let path = Path::new("/proc/sys").join(key);
    fs::write(&path, value).with_context(|| format!("failed to set {} to {value}", path.display()))
}

fn raise(key: &str, least: u64) -> Result<()> {
    let path = Path::new("/proc/sys").join(key);
    let now = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    match now.trim().parse::<u64>() {
        Ok(value) if value >= least => Ok(()),
        _ => set(key, &least.to_string()),
    }
}
