"""Pods with an address of another node's range are found and ended; those of this node's range, of no range and of the machine stay.

In network namespaces of this script's own; which processes are in Pods is given."""

import os
import subprocess
import sys
import time

if "ADDRESSES_INSIDE" not in os.environ:
    own = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    sys.exit(subprocess.run(own, env={**os.environ, "ADDRESSES_INSIDE": "1"}, check=False).returncode)

from ansible_collections.clusterwright.cluster.plugins.module_utils import pod_addresses, processes

SETUP = "ip link add eth0 type bridge; ip link set eth0 up; for address in {}; do ip address add $address dev eth0; done; echo ready; "


def pod(*addresses):
    """The pid of a process in a network namespace with these addresses, and of its child."""
    script = SETUP.format(" ".join(addresses)) + "sleep 600 & echo $!; exec sleep 600"
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process, int(process.stdout.readline())


def runs(pid):
    """One that has ended and that nobody has collected has no command line."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="ascii") as line:
            return bool(line.read())
    except OSError:
        return False


here, _ = pod("10.220.1.5/24")
stray, child = pod("10.220.7.5/24")
elsewhere, _ = pod("192.0.2.5/24")
bare, _ = pod()
machine = subprocess.Popen(["sleep", "600"])
pods = {here.pid, stray.pid, child, elsewhere.pid, bare.pid, machine.pid}
processes.in_pod = lambda pid: pid in pods

found = pod_addresses.strays("10.220.0.0/16", "10.220.1.0/24")
assert {address: sorted(pids) for address, pids in found.items()} == {"10.220.7.5": sorted((stray.pid, child))}, found
pod_addresses.end(found["10.220.7.5"])
stray.wait(10)
deadline = time.monotonic() + 10
while runs(child):
    assert time.monotonic() < deadline, "its child runs"
    time.sleep(0.05)
assert [process.poll() for process in (here, elsewhere, bare, machine)] == [None] * 4, "another one was ended"
assert pod_addresses.strays("10.220.0.0/16", "10.220.1.0/24") == {}, "one is left"
print("ended:", found)
