//! The lab's network: one bridge that the host, the machines and the metadata cluster's nodes share.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::{Invocation, run};

/// The bridge's name.
pub const BRIDGE: &str = "cwlab0";
/// The host's address on the bridge.
pub const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 1);
/// The bridge's hardware address. One that is not given is the lowest of the machines': it changes when they come and
/// go, and everybody's ways to the host are wrong until they ask anew, which takes half a minute.
const HARDWARE_ADDRESS: &str = "02:00:ac:1e:00:01";
/// Length of the network's prefix.
pub const PREFIX_LENGTH: u8 = 24;
/// The network that machines live in.
pub const MACHINE_NETWORK: &str = "172.30.0.0/24";
/// The network of the metadata cluster's Pods.
pub const POD_NETWORK: &str = "10.200.0.0/16";
/// Private ranges. A machine that asks there for what it thinks is its own cluster's must not get an answer of another
/// network.
const PRIVATE_NETWORKS: [&str; 4] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"];
/// The chain that says which of them machines may reach through the host.
const PRIVATE_CHAIN: &str = "CW-LAB-PRIVATE";
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
    run("ip", ["address", "replace", address.as_str(), "dev", BRIDGE]).context("failed to address the bridge")?;
    run("ip", ["link", "set", BRIDGE, "up"]).context("failed to start the bridge")?;
    set("net/ipv4/ip_forward", "1")?;
    // Pods of the second metadata node answer over another way than the reverse path would guess.
    set(&format!("net/ipv4/conf/{BRIDGE}/rp_filter"), "0")?;
    // Machines are a network of their own: the host's Service rules are not for the frames between them.
    if Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists() {
        set("net/bridge/bridge-nf-call-iptables", "0")?;
    }
    let resolv_conf = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    for command in private_chain(&nameservers(&resolv_conf)) {
        let made = Invocation::new("iptables").args(["-w"]).args(&command).output()?;
        // The chain may be there already; it is filled anew.
        if !made.ok() && command.first().is_none_or(|verb| verb != "-N") {
            bail!("failed to fill the chain {PRIVATE_CHAIN}: iptables {}: {}", command.join(" "), made.stderr.trim());
        }
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
            iptables("-D", &rule).run().context("failed to remove a firewall rule")?;
        }
    }
    for verb in ["-F", "-X"] {
        // A lab that was not up has no such chain.
        Invocation::new("iptables").args(["-w", verb, PRIVATE_CHAIN]).output()?;
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
    let rule = |table, chain, words: &[&'static str]| Rule { table, chain, words: words.to_vec() };
    vec![
        rule("nat", "POSTROUTING", &["-s", MACHINE_NETWORK, "!", "-o", BRIDGE, "-j", "MASQUERADE"]),
        rule("nat", "POSTROUTING", &["-s", POD_NETWORK, "!", "-d", POD_NETWORK, "-j", "MASQUERADE"]),
        rule("filter", "FORWARD", &["-i", BRIDGE, "-j", "ACCEPT"]),
        rule("filter", "FORWARD", &["-o", BRIDGE, "-j", "ACCEPT"]),
        rule("filter", "FORWARD", &["-s", POD_NETWORK, "-j", "ACCEPT"]),
        rule("filter", "FORWARD", &["-d", POD_NETWORK, "-j", "ACCEPT"]),
        // Each rule goes before those that are there: the last one is looked at first. Answers are not for it.
        rule(
            "filter",
            "FORWARD",
            &["-i", BRIDGE, "!", "-o", BRIDGE, "-m", "conntrack", "--ctstate", "NEW", "-j", PRIVATE_CHAIN],
        ),
    ]
}

/// The commands that make the chain: the metadata cluster's Pods and the host's own name servers, which machines ask as
/// well, and nothing else that is private.
fn private_chain(nameservers: &[Ipv4Addr]) -> Vec<Vec<String>> {
    let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let append = |destination: &str, target: &[&str]| {
        let mut words = command(&["-A", PRIVATE_CHAIN, "-d", destination, "-j"]);
        words.extend(command(target));
        words
    };
    let mut commands = vec![command(&["-N", PRIVATE_CHAIN]), command(&["-F", PRIVATE_CHAIN])];
    commands.push(append(POD_NETWORK, &["RETURN"]));
    commands.extend(nameservers.iter().map(|address| append(&address.to_string(), &["RETURN"])));
    let reject = ["REJECT", "--reject-with", "icmp-admin-prohibited"];
    commands.extend(PRIVATE_NETWORKS.iter().map(|network| append(network, &reject)));
    commands
}

/// The IPv4 name servers of a resolv.conf.
fn nameservers(resolv_conf: &str) -> Vec<Ipv4Addr> {
    let words = resolv_conf.lines().map(str::split_whitespace);
    words.filter_map(|mut words| (words.next()? == "nameserver").then(|| words.next()?.parse().ok())?).collect()
}

fn ensure_rule(rule: &Rule) -> Result<()> {
    if !iptables("-C", rule).output()?.ok() {
        iptables("-I", rule).run().context("failed to add a firewall rule")?;
    }
    Ok(())
}

fn iptables(verb: &str, rule: &Rule) -> Invocation {
    Invocation::new("iptables").args(["-w", "-t", rule.table, verb, rule.chain]).args(&rule.words).args([
        "-m",
        "comment",
        "--comment",
        COMMENT,
    ])
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

#[cfg(test)]
mod tests {
    use super::{BRIDGE, nameservers, private_chain, rules};
    use std::process::Command;

    #[test]
    fn name_servers_are_read_from_resolv_conf() {
        let text = "# nameserver 10.0.0.1\nsearch a\nnameserver 10.255.255.53\nnameserver fe80::1\nnameserver\n";
        assert_eq!(nameservers(text), ["10.255.255.53".parse::<std::net::Ipv4Addr>().unwrap()]);
    }

    /// In network namespaces: this one is the host; a machine is on the bridge, and somebody behind the host has every
    /// address and refuses all connections, so that "refused" means that the packet was forwarded.
    #[test]
    fn the_host_forwards_nothing_of_its_machines_to_private_ranges_other_than_its_own() {
        let mut script = format!(
            "set -eu
            unshare --net sh -c 'exec sleep 60' & machine=$!
            unshare --net sh -c 'exec sleep 60' & far=$!
            trap 'kill $machine $far' EXIT
            for pid in $machine $far; do
              until [ \"$(readlink /proc/$pid/ns/net)\" != \"$(readlink /proc/$$/ns/net)\" ]; do sleep 0.05; done
            done
            in_machine() {{ nsenter --net=/proc/$machine/ns/net \"$@\"; }}
            in_far() {{ nsenter --net=/proc/$far/ns/net \"$@\"; }}
            ip link add {BRIDGE} type bridge; ip address add 172.30.0.1/24 dev {BRIDGE}; ip link set {BRIDGE} up
            ip link add wire type veth peer name host0 netns $machine; ip link set wire master {BRIDGE} up
            in_machine ip address add 172.30.0.9/24 dev host0; in_machine ip link set host0 up
            in_machine ip route add default via 172.30.0.1
            ip link add out type veth peer name in netns $far; ip address add 203.0.113.1/24 dev out; ip link set out up
            in_far ip link set lo up; in_far ip address add 203.0.113.2/24 dev in; in_far ip link set in up
            in_far ip route add local 0.0.0.0/0 dev lo; in_far ip route add 203.0.113.1/32 dev in
            ip route add default via 203.0.113.2; sysctl -q -w net.ipv4.ip_forward=1; iptables -P FORWARD DROP\n"
        );
        // Twice, as `lab up` may be played again.
        for _round in 0..2 {
            for command in private_chain(&["10.255.255.53".parse().unwrap()]) {
                let may_exist = if command[0] == "-N" { " 2>/dev/null || true" } else { "" };
                script += &format!("iptables {}{may_exist}\n", command.join(" "));
            }
        }
        for rule in rules() {
            script += &format!("iptables -t {} -I {} {}\n", rule.table, rule.chain, rule.words.join(" "));
        }
        for address in
            ["10.96.0.10", "10.255.255.53", "10.200.1.5", "172.31.0.1", "192.168.1.1", "100.64.0.1", "198.51.100.7"]
        {
            let connect = format!("bash -c 'echo > /dev/tcp/{address}/80'");
            script += &format!("if in_machine timeout 5 {connect} 2>&1 | grep -q refused; then echo {address}; fi\n");
        }
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "bash", "-c", &script])
            .output()
            .unwrap();
        let forwarded = String::from_utf8_lossy(&output.stdout);
        let forwarded: Vec<&str> = forwarded.lines().collect();
        assert_eq!(
            forwarded,
            ["10.255.255.53", "10.200.1.5", "198.51.100.7"],
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
