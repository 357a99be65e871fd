"""What Calico, Cilium and Flannel put into the kernel is found and removed, and what is the machine's own stays; and preflight does not
take the routes of the machine's own cluster for a stranger's."""

import ctypes
import json
import os
import struct

from machine_world import enter, play, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import ipset, leftovers, network_findings  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import host_info, reset  # noqa: E402

REPLACE_CREATE = 0x600


def ip(*words: str, ok: bool = True) -> str:
    return sh("ip", *words, ok=ok)


def member(identity: str = "a") -> None:
    write("/etc/clusterwright/cluster.json", json.dumps({"identity": identity, "name": "a", "pod_cidr": "10.244.0.0/16"}))


def make_set(name: str, kind: bytes = b"hash:ip") -> None:
    nested = 0x8000
    body = ipset.attribute(ipset.NAME, name.encode() + b"\0") + ipset.attribute(3, kind + b"\0") + ipset.attribute(4, b"\1")
    ipset.ask(2, ipset.REQUEST | ipset.ACK | REPLACE_CREATE, body + ipset.attribute(5, b"\2") + ipset.attribute(7 | nested, b""))


def machine() -> None:
    """The machine's own: nothing of it may be touched."""
    ip("link", "add", "eth0", "type", "veth", "peer", "name", "wire")
    for name in ("eth0", "wire"):
        ip("link", "set", name, "up")
    ip("address", "add", "192.168.7.2/24", "dev", "eth0")
    ip("route", "add", "172.30.0.0/16", "via", "192.168.7.1")
    ip("route", "add", "blackhole", "203.0.113.0/24")
    ip("rule", "add", "priority", "200", "fwmark", "0x7", "lookup", "300")
    ip("link", "add", "lxcbr0", "type", "veth", "peer", "name", "california")
    for command in ("iptables-nft", "iptables-legacy"):
        sh(command, "-N", "MINE")
        sh(command, "-A", "INPUT", "-m", "comment", "--comment", "about calico", "-j", "MINE")
    sh("nft", "add", "table", "inet", "mine")
    make_set("mine")


def machine_own() -> str:
    """All of it as text, to compare."""
    shown = [ip("-4", "route"), ip("rule"), sh("iptables-nft-save", "-t", "filter"), sh("iptables-legacy-save", "-t", "filter")]
    # Without how many packets each chain has seen: an interface that comes up greets its network.
    lines = [line.partition(" [")[0] for text in shown for line in text.splitlines() if not line.startswith("#")]
    return "\n".join([*lines, *sorted(os.listdir("/sys/class/net")), sh("nft", "list", "table", "inet", "mine"), *ipset.names()])


def calico() -> None:
    for name in ("cali1234567890a", "vxlan.calico"):
        ip("link", "add", name, "type", "veth", "peer", "name", f"p{name[:9]}")
        ip("link", "set", name, "up")
    ip("route", "add", "blackhole", "10.244.3.0/26", "proto", "80")
    ip("route", "add", "blackhole", "10.244.4.0/26", "proto", "bird")
    ip("route", "add", "10.244.5.0/26", "via", "192.168.7.9", "proto", "bird")
    ip("rule", "add", "not", "priority", "99", "fwmark", "0x100000/0x100000", "lookup", "1")
    for command in ("iptables-nft", "iptables-legacy"):
        sh(command, "-N", "cali-FORWARD")
        sh(command, "-N", "cali-from-wl-dispatch")
        sh(command, "-A", "cali-FORWARD", "-j", "cali-from-wl-dispatch")
        sh(command, "-I", "FORWARD", "-m", "comment", "--comment", "cali:wUHhoiAYhphO9Mso", "-j", "cali-FORWARD")
        accepted = ("-m", "comment", "--comment", "cali:S93hcgKJrXEqnTfs", "-m", "mark", "--mark", "0x10000/0x10000")
        sh(command, "-A", "FORWARD", *accepted, "-j", "ACCEPT")
    sh("nft", "add", "table", "ip", "calico")
    sh("nft", "add", "table", "ip6", "calico")
    for name in ("cali40s:TrzVxQ", "cali60all-ipam"):
        make_set(name)
    make_set("cali40masq-ipam", b"list:set")
    write("/var/lib/calico/nodename")
    write("/run/calico/bird.ctl")
    os.makedirs("/run/calico/cgroup", exist_ok=True)
    sh("mount", "-t", "tmpfs", "tmpfs", "/run/calico/cgroup")


def cilium() -> None:
    for name in ("cilium_host", "lxc_health", "lxc0123456789ab"):
        ip("link", "add", name, "type", "veth", "peer", "name", f"x{name[:12]}")
    ip("rule", "add", "priority", "9", "fwmark", "0x200/0xf00", "lookup", "2004")
    ip("rule", "add", "priority", "10", "fwmark", "0xa00/0xf00", "lookup", "2005")
    ip("route", "add", "local", "default", "dev", "lo", "table", "2004")
    ip("rule", "add", "priority", "100", "lookup", "local")
    ip("rule", "delete", "priority", "0")
    sh("iptables-nft", "-N", "CILIUM_FORWARD")
    sh("iptables-nft", "-A", "FORWARD", "-m", "comment", "--comment", "cilium-feeder: CILIUM_FORWARD", "-j", "CILIUM_FORWARD")
    write("/run/cilium/state/globals/node_config.h")
    write("/etc/sysctl.d/99-zzz-override_cilium.conf")
    os.makedirs("/sys/fs/bpf/tc/globals")
    for path, name in (("/sys/fs/bpf/tc/globals/cilium_calls", b"cil_from_netdev"), ("/sys/fs/bpf/other", b"mine")):
        pin(path, name)
    os.makedirs("/sys/fs/bpf/cilium/devices/eth0")
    pin("/sys/fs/bpf/cilium/devices/eth0/cil_from_netdev", b"cil_from_netdev")
    sh("tc", "qdisc", "add", "dev", "eth0", "clsact")
    attach = ("tc", "filter", "add", "dev", "eth0", "ingress", "prio")
    sh(*attach, "1", "bpf", "da", "object-pinned", "/sys/fs/bpf/tc/globals/cilium_calls")
    sh(*attach, "7", "bpf", "da", "object-pinned", "/sys/fs/bpf/other")
    pin("/sys/fs/bpf/cilium/xdp", b"cil_xdp_entry", kind=6)
    ip("link", "set", "dev", "eth0", "xdpgeneric", "pinned", "/sys/fs/bpf/cilium/xdp")


def pin(path: str, name: bytes, kind: int = 3) -> None:
    """Loads the program `return -1` and pins it."""
    instructions = struct.pack("<BBhi", 0xB7, 0, 0, -1) + struct.pack("<BBhi", 0x95, 0, 0, 0)
    code, licence = ctypes.create_string_buffer(instructions), ctypes.create_string_buffer(b"GPL")
    load = struct.pack("<IIQQIIQII16s", kind, 2, ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0, 0, 0, name)
    program = bpf(5, load)
    where = ctypes.create_string_buffer(path.encode())
    bpf(6, struct.pack("<QII", ctypes.addressof(where), program, 0))
    os.close(program)


def bpf(command: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    data = ctypes.create_string_buffer(attributes)
    result = libc.syscall(321 if os.uname().machine == "x86_64" else 280, command, data, len(attributes))
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result


def flannel() -> None:
    ip("link", "add", "flannel.1", "type", "vxlan", "id", "1", "dstport", "8472")
    ip("route", "add", "10.244.9.0/24", "via", "192.168.7.8")
    sh("iptables-nft", "-t", "nat", "-N", "FLANNEL-POSTRTG")
    sh("iptables-nft", "-t", "nat", "-A", "POSTROUTING", "-m", "comment", "--comment", "flanneld masq", "-j", "FLANNEL-POSTRTG")
    sh("nft", "add", "table", "ip", "flannel-ipv4")
    write("/run/flannel/subnet.env")


def another() -> None:
    """A plugin that nobody has heard of, with a bridge for its Pods and the way to another node's."""
    ip("link", "add", "routes0", "type", "bridge")
    ip("link", "set", "routes0", "up")
    ip("address", "add", "10.244.7.1/24", "dev", "routes0")
    ip("route", "add", "10.244.8.0/24", "via", "192.168.7.9")


def clean() -> list:
    result, failure = play(host_info, report="clean", must_be_clean=False)
    assert failure is None, failure
    return result["clusterwright"]["leftovers"]


def preflight(identity: str, pods: str) -> list:
    found = network_findings.networks({"pod_cidr": pods, "service_cidr": "10.96.0.0/12", "ip": "192.168.7.2", "identity": identity})
    return [finding["message"] for finding in found]


def a_plugin_leaves_nothing(plugin, signs: tuple) -> None:
    before = machine_own()
    assert clean() == [], clean()
    member()
    plugin()
    left = clean()
    for sign in signs:
        assert any(sign in text for text in left), f"{sign} is not found: {left}"
    result, failure = play(reset)
    assert failure is None, failure.message
    assert result["changed"] and clean() == []
    now = machine_own()
    assert now == before, f"{before}\n-- became --\n{now}"


def its_own_clusters_routes_are_no_clash() -> None:
    member()
    calico()
    flannel()
    another()
    assert preflight("a", "10.244.0.0/16") == [], preflight("a", "10.244.0.0/16")
    # A network that is there and no plugin's.
    assert any("172.30.0.0/16" in text for text in preflight("a", "172.30.4.0/22")), preflight("a", "172.30.4.0/22")
    assert any("192.168.7.0/24" in text for text in preflight("a", "192.168.0.0/16"))
    # Of another cluster's machine a way into the Pods' range is a clash.
    assert any("10.244.9.0/24" in text for text in preflight("b", "10.244.0.0/16")), preflight("b", "10.244.0.0/16")
    assert play(reset)[1] is None


machine()
ip("route", "add", "blackhole", "10.250.1.0/24")
assert any("10.250.1.0/24 (blackhole route)" in text for text in preflight("b", "10.250.0.0/16")), preflight("b", "10.250.0.0/16")
ip("route", "delete", "blackhole", "10.250.1.0/24")
a_plugin_leaves_nothing(
    calico,
    ("interface cali1234567890a", "interface vxlan.calico", "blackhole 10.244.3.0/26", "blackhole 10.244.4.0/26", "10.244.5.0/26 via",
     "routing rule 99", "iptables-nft rules", "iptables-legacy rules", "nft table ip6 calico", "cali40s:TrzVxQ", "/var/lib/calico",
     "mount /run/calico/cgroup"),
)
a_plugin_leaves_nothing(
    cilium,
    ("interface cilium_host", "interface lxc0123456789ab", "routing rule 9 ", "routing rule 100", "local default", "iptables-nft rules",
     "BPF pin /sys/fs/bpf/tc/globals/cilium_calls", "BPF pin /sys/fs/bpf/cilium", "BPF filter on eth0 (ingress)", "XDP program on eth0", "/run/cilium",
     "99-zzz-override_cilium.conf"),
)
assert "mine" in sh("tc", "filter", "show", "dev", "eth0", "ingress"), "another's filter stays"
assert os.listdir("/sys/fs/bpf").count("other") == 1
a_plugin_leaves_nothing(flannel, ("interface flannel.1", "10.244.9.0/24 via", "iptables-nft rules", "nft table ip flannel-ipv4", "/run/flannel"))
a_plugin_leaves_nothing(another, ("interface routes0", "10.244.8.0/24 via"))
its_own_clusters_routes_are_no_clash()
assert leftovers.find_all() == []
