"""A machine that was given up and is back: nothing there serves or speaks for its cluster any more, and its data stays.

Real processes, addresses and settings, in namespaces of this script's own; systemd is a stand-in that stops them by their names."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

if "FENCE_INSIDE" not in os.environ:
    own = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    sys.exit(subprocess.run(own, env={**os.environ, "FENCE_INSIDE": "1"}, check=False).returncode)

from ansible_collections.clusterwright.cluster.plugins.module_utils import leftovers, membership, units
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output, run
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import fence

PLACE = sys.argv[1]
LISTEN = "import socket, sys, time; s = socket.create_server(('', int(sys.argv[1]))); time.sleep(1000)"


def path(name):
    return os.path.join(PLACE, name)


def write(name, content):
    with open(path(name), "w", encoding="utf-8") as out:
        out.write(content)


def program(name, *argv, of="bash"):
    """Starts a copy of a program under another name."""
    if not os.path.exists(path(name)):
        shutil.copy(shutil.which(of), path(name))
    return subprocess.Popen([path(name), *argv], stdin=subprocess.DEVNULL)


def ip(*argv):
    run("ip", *argv, reason="Test")


class Systemd:
    """Units with the process of each, all enabled."""

    def __init__(self, processes):
        self.processes = processes
        self.enabled = set(processes)
        self.stopped = []
        # A unit that does not stop.
        self.stuck = ""
        units.exists = lambda unit: unit in processes
        units.state = self.state

    def active(self, unit):
        process = self.processes[unit]
        return unit not in self.stopped if process is None else process.poll() is None

    def state(self, unit):
        return {
            "ActiveState": "active" if self.active(unit) else "inactive",
            "UnitFileState": "enabled" if unit in self.enabled else "disabled",
        }

    def disable(self, unit):
        if unit == self.stuck:
            return
        self.enabled.discard(unit)
        self.stopped.append(unit)
        if self.processes[unit]:
            self.processes[unit].terminate()
            self.processes[unit].wait()


def machine():
    """A control plane that holds the endpoint's address and answers for its Pods."""
    ip("link", "set", "lo", "up")
    ip("link", "add", "host0", "type", "veth", "peer", "name", "wire")
    ip("address", "add", "172.30.0.11/24", "dev", "host0")
    ip("address", "add", "172.30.0.100/32", "dev", "host0")
    ip("link", "set", "host0", "up")
    ip("link", "add", "cni0", "type", "bridge")
    ip("address", "add", "10.220.3.1/24", "dev", "cni0")
    with open("/proc/sys/net/ipv4/conf/host0/proxy_arp", "w", encoding="ascii") as setting:
        setting.write("1\n")
    membership.LOAD_BALANCER = path("balancer.json")
    write("balancer.json", json.dumps({"virtual_ip": "172.30.0.100", "interface": "host0"}))
    fence.SCRIPT = path("script")
    write("script", "sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.host0.proxy_arp=1\n")
    write("data", "of etcd")
    os.environ["CLUSTERWRIGHT_FENCED_BY"] = PLACE
    write("fence", json.dumps({"epoch": 3, "token": 50, "open": True}))


def containers():
    # Its own container ignores that it is asked to end, as a program that is process 1 of its container does by default.
    pod = program("containerd-shim-runc-v2", "-c", f"trap '' TERM; {path('kube-apiserver')} -c 'import time; time.sleep(1000)' & wait", "-namespace", "k8s.io")
    other = program("containerd-shim-runc-v2", "-c", "sleep 1000 & wait", "-namespace", "moby")
    return pod, other


def call(epoch=3, check=False):
    return fence.work(type("Call", (), {"params": {"claim_epoch": epoch}, "check_mode": check}))


def failure(**options):
    try:
        call(**options)
    except StepFailure as failed:
        return failed.reason, failed.message
    raise AssertionError("no failure")


machine()
program("kube-apiserver", "-c", "pass", of=os.path.realpath(sys.executable)).wait()
pod, other = containers()
systemd = Systemd(
    {
        "clusterwright-keepalived.service": program("sleeper", "1000", of="sleep"),
        "kubelet.service": program("kubelet", "-c", LISTEN, "10250", of=os.path.realpath(sys.executable)),
        "etcd.service": program("etcd", "-c", LISTEN, "2379", of=os.path.realpath(sys.executable)),
        "clusterwright-network.service": None,
    }
)
real_attempt = fence.attempt


def attempt(*argv, **options):
    if argv[:3] == ("systemctl", "disable", "--now"):
        systemd.disable(argv[3])
        return Output(0, "", "")
    return real_attempt(*argv, **options)


fence.attempt = attempt
deadline = time.monotonic() + 60
while not ({2379, 10250} <= set(fence.listening()) and "kube-apiserver" in fence.containers.running()):
    assert time.monotonic() < deadline, fence.serving()
    time.sleep(0.05)

# Another claim, or no guard that knows of any: nothing is touched.
for known in ('{"epoch": 4, "token": 1}', '{"epoch": 2, "token": 1}', ""):
    write("fence", known)
    reason, message = failure()
    assert reason == "EpochDiffers" and "claim epoch 3 was expected" in message, message
    assert failure(check=True)[0] == "EpochDiffers"
assert not systemd.stopped and pod.poll() is None
write("fence", json.dumps({"epoch": 3, "token": 50}))

looked = call(check=True)
assert looked["changed"] and not systemd.stopped, "a probe touches nothing"
for part in ("unit kubelet.service", "process etcd", "process kube-apiserver", "port 2379", "port 10250", "address 172.30.0.100",
             "ARP answers by host0", "address 10.220.3.1/24 of cni0"):
    assert part in looked["msg"], (part, looked["msg"])

# What does not stop is said.
systemd.stuck = "etcd.service"
containers_end, fence.containers.end = fence.containers.end, lambda: None
reason, message = failure()
assert reason == "NotFenced" and "unit etcd.service" in message and "process kube-apiserver" in message, message
assert systemd.stopped[0] == "clusterwright-keepalived.service", "the endpoint's address goes first"
systemd.stuck, fence.containers.end = "", lambda: containers_end(1)

assert call()["changed"]
assert call() == {"changed": False, "msg": "nothing served the cluster"}, "a second pass changes nothing"
assert call(check=True)["changed"] is False
assert not systemd.enabled, "nothing comes back with a boot"
assert other.poll() is None, "the containers of others go on"
assert leftovers.text("/proc/sys/net/ipv4/conf/host0/proxy_arp") == "0"
with open(path("data"), encoding="ascii") as data:
    assert data.read() == "of etcd"
assert os.path.exists(path("balancer.json")) and os.path.exists(path("script")), "nothing is deleted"
other.send_signal(signal.SIGKILL)
