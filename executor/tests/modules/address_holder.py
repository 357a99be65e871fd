"""Who holds an endpoint's address is named as a Host, where it is one: it answers for its own address, too. In network namespaces: this
machine, and another one on the same wire."""

import os
import subprocess
import sys

from ansible_collections.clusterwright.cluster.plugins.module_utils import network_findings

VIRTUAL, OWN, OTHER = "10.9.0.9", "10.9.0.1", "10.9.0.7"

if os.environ.get("INSIDE") != "yes":
    here = [sys.executable, __file__, *sys.argv[1:]]
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--net", *here], env={**os.environ, "INSIDE": "yes"}, check=False)
    sys.exit(done.returncode)


def sh(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


def finding(neighbours: dict) -> str:
    params = {
        "virtual_ip": VIRTUAL, "backends": [], "ip": OWN, "virtual_ip_interface": "", "cluster_exists": False, "identity": "a",
        "endpoint_neighbours": neighbours,
    }
    found = network_findings.endpoint(params)
    assert [one["name"] for one in found] == ["vip-in-use"], found
    return found[0]["message"]


def play(other: str) -> None:
    far = ("nsenter", f"--net=/proc/{other}/ns/net")
    sh("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", other)
    sh("ip", "address", "add", f"{OWN}/24", "dev", "eth0")
    sh("ip", "link", "set", "eth0", "up")
    for address in (OTHER, VIRTUAL):
        sh(*far, "ip", "address", "add", f"{address}/24", "dev", "eth0")
    sh(*far, "ip", "link", "set", "eth0", "up")

    known = {OWN: "this", OTHER: "came-back", "10.9.0.8": "off"}
    said = finding(known)
    assert said.startswith("VIPInUse by Host came-back ("), said
    stranger = finding({"10.9.0.8": "off"})
    assert "Host" not in stranger and stranger.startswith("VIPInUse by "), stranger
    assert said.partition("(")[2].partition(")")[0] in stranger, (said, stranger)


process = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up; echo ready; exec sleep 600"], stdout=subprocess.PIPE)
try:
    process.stdout.readline()
    play(str(process.pid))
finally:
    process.kill()
    process.wait()
