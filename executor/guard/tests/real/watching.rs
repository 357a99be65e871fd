//! `guard watch` in a network namespace of the test's own.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::place::{Place, err, eventually, out, succeeds};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A machine's Pod network, as the step makes it, and a guard that keeps it.
struct Network {
    place: Place,
    namespace: String,
    watch: Option<Child>,
}

impl Network {
    fn new() -> Option<Self> {
        let place = Place::new()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("cw-watch-{}-{number}", std::process::id());
        succeeds(Command::new("ip").args(["netns", "add", &namespace]));
        let network = Self { place, namespace, watch: None };
        network.shell("ip link set lo up; ip link add host0 type veth peer name wire; ip link set wire up; ip address add 172.30.0.11/24 dev host0; ip link set host0 up");
        network.shell("ip link add cni0 type bridge; ip address add 10.220.3.1/24 dev cni0; ip link set cni0 up");
        let script = "#!/bin/sh\nset -eu\nip route replace 10.220.0.0/16 dev host0 scope link proto 77\n\
            nft -f - <<'END'\ntable ip clusterwright\ndelete table ip clusterwright\ntable ip clusterwright {\n\
            chain postrouting { type nat hook postrouting priority srcnat; policy accept; ip saddr 10.220.3.0/24 oifname != \"cni0\" masquerade; }\n}\nEND\n";
        fs::write(network.place.file("script"), script).unwrap();
        fs::set_permissions(network.place.file("script"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(network.place.file("sysctl.conf"), "# Ours\nnet.ipv4.ip_forward = 1\n").unwrap();
        network.want();
        Some(network)
    }

    /// Writes what is wanted.
    fn want(&self) {
        let path = |name| self.place.file(name).to_str().unwrap().to_owned();
        let mut wanted = json!({
            "interface": "host0", "pods": "10.220.0.0/16", "protocol": 77, "bridge": "cni0", "gateway": "10.220.3.1/24",
            "script": path("script"), "sysctlFile": path("sysctl.conf"),
            "sysctl": {"net.ipv4.conf.host0.proxy_arp": "1", "net.ipv4.neigh.host0.proxy_delay": "0"},
        });
        wanted["files"] = Value::from_iter([(path("cni/10-clusterwright.conflist"), "{}\n")]);
        fs::write(self.place.file("network.json"), wanted.to_string()).unwrap();
    }

    fn watched() -> Option<Self> {
        let mut network = Self::new()?;
        let log = File::create(network.place.file("journal")).unwrap();
        let watch = network
            .inside(network.place.file("guard").to_str().unwrap())
            .arg("watch")
            .arg("--wanted")
            .arg(network.place.file("network.json"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        network.watch = Some(watch);
        network.eventually_whole("at first");
        Some(network)
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        command
    }

    fn shell(&self, text: &str) -> String {
        let output = self.inside("sh").args(["-ec", text]).output().unwrap();
        assert!(output.status.success(), "{text}: {}", err(&output));
        out(&output)
    }

    fn has_route(&self) -> bool {
        self.shell("ip -4 route show proto 77") == "10.220.0.0/16 dev host0 scope link \n"
    }

    fn is_whole(&self) -> bool {
        let settings = "cd /proc/sys/net/ipv4; cat ip_forward conf/host0/proxy_arp neigh/host0/proxy_delay";
        self.has_route()
            && self.shell(settings) == "1\n1\n0\n"
            && self.shell("ip -oneline -4 address show dev cni0 up").contains("10.220.3.1/24")
            && self.shell("nft list ruleset").contains("masquerade")
            && self.place.file("cni/10-clusterwright.conflist").exists()
    }

    fn eventually_whole(&self, what: &str) {
        eventually(&format!("{what}; {}", self.journal()), || self.is_whole());
    }

    fn journal(&self) -> String {
        fs::read_to_string(self.place.file("journal")).unwrap_or_default()
    }

    /// For longer than two looks of the guard.
    fn stays_without_a_route(&self) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(5) {
            assert!(!self.has_route(), "{}", self.journal());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Until the guard has looked so often that it would have acted.
    fn two_more_looks(&self) {
        // A setting shows when a look was made: each puts it back.
        for _ in 0..2 {
            self.shell("echo 0 >/proc/sys/net/ipv4/conf/host0/proxy_arp");
            eventually("a look", || self.shell("cat /proc/sys/net/ipv4/conf/host0/proxy_arp") == "1\n");
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(watch) = &mut self.watch {
            let _ = watch.kill();
            let _ = watch.wait();
        }
        let _ = Command::new("ip").args(["netns", "delete", &self.namespace]).status();
    }
}

#[test]
fn whatever_flushes_the_pod_network_is_undone_by_the_machine_itself() {
    let Some(network) = Network::watched() else { return };
    for (flush, said) in [
        ("ip route flush proto 77", "the route to 10.220.0.0/16 on host0 was gone: repaired"),
        ("ip link set host0 down; ip link set host0 up", "the route to 10.220.0.0/16 on host0 was gone: repaired"),
        ("ip address flush dev cni0", "cni0 was down or without its address 10.220.3.1/24: repaired"),
        ("ip link set cni0 down", "cni0 was down or without its address 10.220.3.1/24: repaired"),
        ("nft flush ruleset", "the nft table ip clusterwright was gone or another: repaired"),
        (
            "nft flush chain ip clusterwright postrouting",
            "the nft table ip clusterwright was gone or another: repaired",
        ),
        ("echo 0 >/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward was 0 instead of 1: repaired"),
        (
            "echo 0 >/proc/sys/net/ipv4/conf/host0/proxy_arp",
            "net.ipv4.conf.host0.proxy_arp was 0 instead of 1: repaired",
        ),
    ] {
        let before = network.journal().matches(said).count();
        network.shell(flush);
        network.eventually_whole(flush);
        eventually(&format!("{flush} is in the journal: {}", network.journal()), || {
            network.journal().matches(said).count() > before
        });
    }
    fs::remove_dir_all(network.place.file("cni")).unwrap();
    network.eventually_whole("the CNI configuration was removed");
}

#[test]
fn what_is_no_longer_wanted_or_held_by_a_reset_is_left_alone() {
    let Some(network) = Network::watched() else { return };
    // A reset takes the lock, takes away what is wanted, and then the route.
    let lock = File::options().write(true).open(network.place.file("network.lock")).unwrap();
    lock.lock().unwrap();
    network.shell("ip route flush proto 77");
    network.stays_without_a_route();
    fs::remove_file(network.place.file("network.json")).unwrap();
    drop(lock);
    network.stays_without_a_route();
    // The next step writes it again.
    network.want();
    network.eventually_whole("it is wanted again");
}

#[test]
fn what_somebody_takes_away_again_and_again_is_left_and_the_rest_is_kept() {
    let Some(network) = Network::watched() else { return };
    let said = "again and again: somebody else changes it; it is left so";
    while !network.journal().contains(said) {
        network.shell("ip route flush proto 77");
        eventually("it was put back, or left", || network.has_route() || network.journal().contains(said));
        assert!(network.journal().matches("on host0 was gone: repaired").count() <= 6, "{}", network.journal());
    }
    network.two_more_looks();
    assert!(!network.has_route());
    assert_eq!(network.journal().matches(said).count(), 1, "{}", network.journal());
}

#[test]
fn a_watch_goes_on_as_the_guard_that_a_run_brings_and_is_no_work_of_a_run() {
    let Some(mut network) = Network::watched() else {
        return;
    };
    network.place.begun(1, 1);
    network.place.install();
    eventually("it goes on as the new one", || network.journal().contains("going on as that one"));
    assert_eq!(network.place.begun(2, 1)["ended"], json!([]));
    network.shell("ip route flush proto 77");
    network.eventually_whole("after the guard was replaced");
    let watch = network.watch.as_mut().unwrap();
    assert!(watch.try_wait().unwrap().is_none());
    network.place.report();
}
