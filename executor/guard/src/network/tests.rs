use proptest::prelude::*;

use super::*;

const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
host0\t00000000\t01001EAC\t0003\t0\t0\t0\t00000000\t0\t0\t0
host0\t0000DC0A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
cni0\t0003DC0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
";

const TRIE: &str = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.220.3.0/24 2 0 2
        |-- 10.220.3.0
           /24 link UNICAST
        |-- 10.220.3.1
           /32 host LOCAL
        |-- 10.220.3.255
           /32 link BROADCAST
";

const LINKS: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
 host0:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
  cni0:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
";

fn wanted() -> Wanted {
    Wanted {
        interface: "host0".into(),
        pods: "10.220.0.0/16".parse().unwrap(),
        protocol: 77,
        bridge: "cni0".into(),
        gateway: "10.220.3.1/24".parse().unwrap(),
        sysctl: BTreeMap::from([("net.ipv4.ip_forward".into(), "1".into())]),
        sysctl_file: String::new(),
        script: "/usr/local/sbin/clusterwright-network".into(),
        files: BTreeMap::new(),
    }
}

fn whole() -> Observed {
    Observed {
        routes: ROUTES.into(),
        addresses: TRIE.into(),
        links: LINKS.into(),
        settings: BTreeMap::from([("net.ipv4.ip_forward".into(), "1".into())]),
        rules_differ: Some(false),
        missing: Vec::new(),
    }
}

fn check(change: impl FnOnce(&mut Observed), expected: &[&str]) {
    let (wanted, mut observed) = (wanted(), whole());
    change(&mut observed);
    let found: Vec<String> =
        defects(&wanted, &wanted.settings(""), &observed).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_there_is_no_defect_and_what_is_gone_is_named() {
    check(|_| (), &[]);
    check(
        |observed| observed.routes = ROUTES.replace("host0\t0000DC0A", "eth9\t0000DC0A"),
        &["the route to 10.220.0.0/16 on host0 was gone"],
    );
    check(
        |observed| observed.addresses = TRIE.replace("/32 host LOCAL", "/32 link UNICAST"),
        &["cni0 was down or without its address 10.220.3.1/24"],
    );
    check(
        |observed| observed.routes = ROUTES.replace("cni0", "cni9"),
        &["cni0 was down or without its address 10.220.3.1/24"],
    );
    check(
        |observed| observed.settings = BTreeMap::from([("net.ipv4.ip_forward".into(), "0".into())]),
        &["net.ipv4.ip_forward was 0 instead of 1"],
    );
    check(|observed| observed.rules_differ = Some(true), &["the nft table ip clusterwright was gone or another"]);
    check(|observed| observed.missing = vec!["/etc/cni/net.d/a".into()], &["/etc/cni/net.d/a was gone"]);
}

#[test]
fn a_route_of_another_kind_does_not_stand_for_ours() {
    let gone = ["the route to 10.220.0.0/16 on host0 was gone"];
    let ours = "0000DC0A\t00000000\t0001\t0\t0\t0\t0000FFFF";
    for other in [
        "0000DC0A\t01001EAC\t0003\t0\t0\t0\t0000FFFF",
        "0000DC0A\t00000000\t0201\t0\t0\t0\t0000FFFF",
        "0000DC0A\t00000000\t0000\t0\t0\t0\t0000FFFF",
        "0000DC0A\t00000000\t0001\t0\t0\t0\t00FFFFFF",
        "0000DC0A",
        "",
    ] {
        check(|observed| observed.routes = ROUTES.replace(ours, other), &gone);
    }
}

#[test]
fn what_nobody_made_yet_or_nobody_looked_at_is_not_gone() {
    check(
        |observed| {
            observed.links = LINKS.replace("cni0", "lxc0").replace("host0", "eth0");
            observed.addresses = String::new();
            observed.routes = String::new();
            observed.settings = BTreeMap::new();
            observed.rules_differ = None;
        },
        &[],
    );
}

#[test]
fn a_limit_that_somebody_raised_stays_and_a_switch_does_not() {
    for (found, wanted, met) in [
        ("1048576", "1048576", true),
        ("2097152", "1048576", true),
        ("8192", "1048576", false),
        ("2", "1", false),
        ("1", "0", false),
        ("4096\t16384", "4096 16384", true),
        ("", "1", false),
    ] {
        assert_eq!(is_met(found, wanted), met, "{found:?} for {wanted:?}");
    }
}

#[test]
fn settings_of_the_file_are_read_and_ours_count_more() {
    let file = "# Written by clusterwright.\nfs.inotify.max_user_instances = 8192\nnet.ipv4.ip_forward = 0\n; x = y\n";
    let expected = [("fs.inotify.max_user_instances", "8192"), ("net.ipv4.ip_forward", "1")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(wanted().settings(file), BTreeMap::from(expected));
}

#[test]
fn the_dot_of_an_interface_stays_a_dot_below_proc() {
    let path = setting_path("net.ipv4.conf.eth0/10.proxy_arp");
    assert_eq!(path, "/proc/sys/net/ipv4/conf/eth0.10/proxy_arp");
}

#[test]
fn what_is_no_subnet_is_not_read_as_one() {
    for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "fd00::/64", "10.0.0.0/-1"] {
        assert!(text.parse::<Subnet>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn whatever_the_kernel_shows_is_read(routes in "(?s).{0,200}", addresses in "(?s).{0,200}", length in 0..=32u8) {
        let mut wanted = wanted();
        wanted.pods.length = length;
        let observed = Observed { routes, addresses, ..whole() };
        defects(&wanted, &wanted.settings(""), &observed);
    }
}
