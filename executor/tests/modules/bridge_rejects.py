"""On a node with the bridge network, an address of a Service or Pod without an endpoint leads nowhere; the rest works. In network
namespaces: a node with two Pods, and a far machine behind the default route that answers for every address."""

import os
import socket
import subprocess
import sys

from ansible_collections.clusterwright.cluster.plugins.modules import bridge_network as bridge

PODS, OWN, SERVICES = "10.220.0.0/16", "10.220.1.0/24", "10.96.0.0/16"
POD, CLIENT, GATEWAY, ABSENT_POD, REMOTE = "10.220.1.5", "10.220.1.6", "10.220.1.1", "10.220.9.9", "198.51.100.7"
SERVED, UDP_ONLY, UNKNOWN = "10.96.0.20", "10.96.0.10", "10.96.77.7"

if os.environ.get("INSIDE") != "yes":
    here = [sys.executable, __file__, *sys.argv[1:]]
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--net", *here], env={**os.environ, "INSIDE": "yes"}, check=False)
    sys.exit(done.returncode)

ANSWER = """
import socket, sys
server = socket.create_server(("", int(sys.argv[1])))
print("listens", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(sys.argv[2].encode())
    connection.close()
"""
ASK = """
import errno, socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=8) as connection:
        print(connection.recv(100).decode())
except TimeoutError:
    print("silence")
except OSError as error:
    print(errno.errorcode[error.errno])
"""
processes = []


def sh(*argv, text=None):
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


def namespace():
    """A network namespace, by the pid of a process that sleeps in it."""
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up; echo ready; exec sleep 600"], stdout=subprocess.PIPE)
    processes.append(process)
    process.stdout.readline()
    return str(process.pid)


def inside(pid, *argv):
    return ("nsenter", f"--net=/proc/{pid}/ns/net", *argv) if pid else argv


def serve(pid, port, said):
    process = subprocess.Popen(inside(pid, sys.executable, "-c", ANSWER, str(port), said), stdout=subprocess.PIPE)
    processes.append(process)
    process.stdout.readline()


def ask(pid, address, port=80):
    return sh(*inside(pid, sys.executable, "-c", ASK, address, str(port))).strip()


def drift():
    return bridge.drift("up0", PODS, OWN, [SERVICES])


def connect(pid, name, peer):
    """A wire between this namespace (`name`) and another one (`eth0`)."""
    sh("ip", "link", "add", name, "type", "veth", "peer", "name", peer, "netns", pid)
    sh("ip", "link", "set", name, "up")
    sh(*inside(pid, "ip", "link", "set", peer, "up"))


def play():
    sh("ip", "link", "set", "lo", "up")
    world, server, client = namespace(), namespace(), namespace()
    connect(world, "up0", "eth0")
    # Address resolution gives up after 0.3 s instead of 3.
    sh("ip", "ntable", "change", "name", "arp_cache", "dev", "up0", "retrans", "100")
    sh("ip", "address", "add", "172.31.9.1/24", "dev", "up0")
    sh(*inside(world, "ip", "address", "add", "172.31.9.254/24", "dev", "eth0"))
    # It has every address, but says so on the wire for its own only.
    sh(*inside(world, "sysctl", "-q", "-w", "net.ipv4.conf.all.arp_ignore=1"))
    sh(*inside(world, "ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo"))
    sh(*inside(world, "ip", "route", "add", "172.31.9.1/32", "dev", "eth0"))
    sh("ip", "route", "add", "default", "via", "172.31.9.254")
    for port in (53, 80):
        serve(world, port, "far away")

    program = bridge.script("up0", PODS, OWN, bridge.ipv4_ranges(f"{SERVICES},fd00::/108"))
    sh("sh", text=program)
    once = sh("nft", "list", "table", "ip", "clusterwright")
    sh("sh", text=program)
    assert sh("nft", "list", "table", "ip", "clusterwright") == once, "a second pass differs"
    assert drift() == [], drift()
    # The address of a range that this node had before.
    sh("ip", "address", "add", "10.220.7.1/24", "dev", "cni0")
    assert drift() == ["one address alone on cni0"], drift()
    sh("sh", text=program)
    assert drift() == [], drift()

    for pid, wire, address in ((server, "pod0", POD), (client, "pod1", CLIENT)):
        connect(pid, wire, "eth0")
        sh("ip", "link", "set", wire, "master", "cni0")
        sh(*inside(pid, "ip", "address", "add", f"{address}/24", "dev", "eth0"))
        sh(*inside(pid, "ip", "route", "add", "default", "via", GATEWAY))
    serve(server, 8080, "the Pod")
    return world, client


# What kube-proxy does with a Service that has TCP on one address and only UDP on another, in its two modes.
IPTABLES = [
    ("iptables", "-t", "nat", verb, chain, "-d", service, "-p", protocol, "--dport", port, "-j", "DNAT", "--to", target)
    for verb, chain in (("-A", "PREROUTING"), ("-A", "OUTPUT"))
    for service, protocol, port, target in (
        (SERVED, "tcp", "80", f"{POD}:8080"),
        (UDP_ONLY, "udp", "53", f"{POD}:5353"),
    )
]
NFTABLES = f"""
table ip kube-proxy {{
  chain services {{
    ip daddr {SERVED} tcp dport 80 dnat to {POD}:8080
    ip daddr {UDP_ONLY} udp dport 53 dnat to {POD}:5353
  }}
  chain nat-prerouting {{ type nat hook prerouting priority dstnat; jump services; }}
  chain nat-output {{ type nat hook output priority -100; jump services; }}
}}
"""


def check(mode, pod):
    def expect(expected, who, address, port=80):
        found = ask(pod if who == "a Pod" else "", address, port)
        assert found == expected, f"{mode}: {who} asks {address}:{port}: {found}, expected {expected}"

    for who in ("a Pod", "the node"):
        expect("far away", who, REMOTE)
        expect("the Pod", who, SERVED)
        expect("the Pod", who, POD, 8080)
        expect("ECONNREFUSED", who, UDP_ONLY, 53)
        expect("ECONNREFUSED", who, UNKNOWN)
        expect("EHOSTUNREACH", who, ABSENT_POD)


def check_losses(world, pod):
    # A DNS cache on the node may have a Service's address itself.
    sh("ip", "link", "add", "dns0", "type", "bridge")
    sh("ip", "address", "add", f"{UDP_ONLY}/32", "dev", "dns0")
    serve("", 5300, "the cache")
    assert ask("", UDP_ONLY, 5300) == "the cache" and ask(pod, UDP_ONLY, 5300) == "the cache"
    sh("ip", "link", "delete", "dns0")

    # Without the route, the Pods' range is behind the default one.
    sh("ip", "route", "delete", PODS)
    assert drift() == [f"route {PODS} dev up0"]
    for who in ("", pod):
        assert ask(who, ABSENT_POD) == "EHOSTUNREACH", "a Pod's address left by the default route"
    connect(world, "up1", "eth1")
    sh("ip", "route", "replace", PODS, "dev", "up1")
    for who in ("", pod):
        assert ask(who, ABSENT_POD) == "EHOSTUNREACH", "a Pod's address left by another interface"

    sh("nft", "flush", "chain", "ip", "clusterwright", "output")
    assert drift()[1:] == ["chain output of nft table clusterwright"], drift()
    sh("nft", "delete", "table", "ip", "clusterwright")
    assert len(drift()) == 4


try:
    assert socket.gethostname()
    far, near = play()
    for command in IPTABLES:
        sh(*command)
    check("iptables", near)
    sh("iptables", "-t", "nat", "-F")
    sh("nft", "-f", "-", text=NFTABLES)
    check("nftables", near)
    check_losses(far, near)
finally:
    for running in processes:
        running.kill()
