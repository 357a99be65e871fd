"""What a distribution or an administrator configured, and what would undo our steps, is found with what to do about it; and a machine's
reservations follow its size."""

import os
import re

from machine_world import enter, play, program, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import (  # noqa: E402
    findings,
    firewalld,
    host_findings,
    machine,
    selinux,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.reservations import reserved  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import host_info  # noqa: E402

SYSCTL = {"net.ipv4.ip_forward": 1, "fs.inotify.max_user_instances": 8192}
PARAMS = {"identity": "a", "sysctl": SYSCTL, "roles": ["worker"], "virtual_ip": "", "pod_cidr": "10.244.0.0/16"}
CHECKS = (host_findings.drop_ins, host_findings.sysctl, host_findings.zram, host_findings.firewall, host_findings.labels)


def found() -> list:
    """(name, severity) of all findings of the host."""
    assert all(check in findings.CHECKS for check in CHECKS), "preflight asks for it"
    return [(one["name"], one["severity"]) for check in CHECKS for one in check(PARAMS)]


def with_file(path: str, content: str, wanted: list, *mentions: str) -> None:
    """The findings while the file is there."""
    write(path, content)
    seen = [one for check in CHECKS for one in check(PARAMS)]
    assert [(one["name"], one["severity"]) for one in seen] == wanted, (path, content, seen)
    for word in mentions:
        assert any(word in one["message"] for one in seen), (word, seen)
    os.unlink(path)


def a_packaged_drop_in_is_found() -> None:
    packaged = "[Service]\nEnvironment=A=b\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_EXTRA_ARGS\n"
    path = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
    with_file(path, packaged, [("unit-drop-in", "error")], path, "dpkg -S")
    with_file(path, "# Written by clusterwright.\n" + packaged, [])
    proxy = "/run/systemd/system/containerd.service.d/proxy.conf"
    with_file(proxy, "[Service]\nEnvironment=HTTPS_PROXY=x\n", [("unit-drop-in", "warning")], proxy)


def a_sysctl_that_comes_after_ours_is_found() -> None:
    late = "/etc/sysctl.d/99-hardening.conf"
    with_file(late, "net.ipv4.ip_forward = 0\n", [("sysctl-overridden", "error")], late, "remove that line")
    with_file(late, "-net/ipv4/ip_forward=0\n", [("sysctl-overridden", "error")])
    with_file(late, "# net.ipv4.ip_forward = 0\nnet.ipv4.ip_forward=1\nfs.inotify.max_user_instances = 9000\n", [])
    with_file(late, "fs.inotify.max_user_*=128\n", [("sysctl-overridden", "error")])
    with_file("/etc/sysctl.d/10-early.conf", "net.ipv4.ip_forward=0\n", [])
    with_file("/etc/sysctl.conf", "net.ipv4.ip_forward=0\n", [("sysctl-overridden", "error")], "/etc/sysctl.conf")
    # A file of the same name in /etc stands for it.
    write("/etc/sysctl.d/99-x.conf", "")
    with_file("/run/sysctl.d/99-x.conf", "net.ipv4.ip_forward=0\n", [])


def swap_that_comes_back_is_found() -> None:
    with_file("/etc/systemd/zram-generator.conf", "[zram0]\nzram-size = ram / 2\n", [("zram-swap", "error")], "zramswap.service")
    with_file("/etc/systemd/zram-generator.conf", "# nothing\n", [])
    write("/run/systemd/container", "systemd-nspawn")
    with_file("/etc/systemd/zram-generator.conf", "[zram0]\n", [])
    os.unlink("/run/systemd/container")


def an_active_firewall_is_found() -> None:
    with_file("/etc/ufw/ufw.conf", "ENABLED=yes\n", [("firewall", "error")], "ufw disable")
    with_file("/etc/ufw/ufw.conf", "ENABLED=no\n", [])
    program("systemctl", 'if [[ "$*" == "is-active firewalld.service" ]]; then echo active; fi')
    assert found() == [("firewall", "error")]
    program("systemctl", "exit 0")
    # Not started by its unit.
    program("firewall-cmd", 'if [[ "$*" == --state ]]; then echo running; fi')
    assert found() == [("firewall", "error")]
    message = host_findings.firewall(PARAMS)[0]["message"]
    assert "systemctl disable --now firewalld" in message and message.endswith(
        "with firewalld: firewall-cmd --permanent --add-port=10250/tcp --add-port=30000-32767/tcp --add-port=30000-32767/udp"
        " && firewall-cmd --permanent --zone=trusted --add-source=10.244.0.0/16 && firewall-cmd --reload"
    ), message
    control_plane = {**PARAMS, "roles": ["control-plane", "etcd"], "virtual_ip": "10.0.0.9", "pod_cidr": "10.244.0.0/16,fd00::/56"}
    assert firewalld.commands(control_plane) == [
        "firewall-cmd --permanent --add-port=6443/tcp --add-port=10250/tcp --add-port=2379-2380/tcp",
        "firewall-cmd --permanent --add-protocol=vrrp",
        "firewall-cmd --permanent --zone=trusted --add-source=10.244.0.0/16 --add-source=fd00::/56",
        "firewall-cmd --reload",
    ]
    assert firewalld.commands({**PARAMS, "roles": ["etcd"]}) == ["firewall-cmd --permanent --add-port=2379-2380/tcp", "firewall-cmd --reload"]
    # Every port that the message names in words is in a command.
    for role, words in host_findings.OPEN.items():
        numbers = {number for port in firewalld.PORTS[role] for number in re.findall(r"\d+", port)}
        assert numbers == set(re.findall(r"\d+", words)), (role, numbers, words)
    program("firewall-cmd", "echo not running >&2; exit 252")
    assert found() == []
    os.unlink("/usr/local/sbin/firewall-cmd")
    sh("nft", "add", "table", "inet", "strict")
    sh("nft", "add", "chain", "inet", "strict", "in", "{ type filter hook input priority 0; policy drop; }")
    assert found() == [("firewall", "error")]
    message = host_findings.firewall(PARAMS)[0]["message"]
    assert "chain inet strict in" in message and "TCP 22, TCP 10250, TCP and UDP 30000-32767, accept" in message, message
    holds_address = {**PARAMS, "roles": ["control-plane", "etcd"], "virtual_ip": "10.0.0.9"}
    wanted = "TCP 22, TCP 6443 and 10250, TCP 2379 and 2380, VRRP (IP protocol 112), accept and forward all that Pods (10.244.0.0/16)"
    assert wanted in host_findings.firewall(holds_address)[0]["message"]
    # What the cluster's own nodes have, an administrator has thought of.
    write("/etc/clusterwright/cluster.json", '{"identity": "a"}')
    assert found() == [("firewall", "warning")]
    sh("nft", "delete", "table", "inet", "strict")


def a_policy_without_containers_is_found() -> None:
    kernel, selinux.KERNEL = selinux.KERNEL, "/data/selinux"
    write("/data/selinux/enforce", "1")
    assert [one["name"] for one in host_findings.labels(PARAMS)] == ["selinux"]
    assert "dnf install container-selinux" in host_findings.labels(PARAMS)[0]["message"]
    write("/data/selinux/enforce", "0")
    assert host_findings.labels(PARAMS) == [], "it refuses nothing"
    write("/etc/selinux/config", "# SELINUXTYPE= one of:\nSELINUX=enforcing\nSELINUXTYPE=mls\n")
    write("/etc/selinux/mls/contexts/files/file_contexts", "/usr/local/s?bin/runc -- system_u:object_r:container_runtime_exec_t:s0\n")
    assert [(one["name"], one["severity"]) for one in host_findings.labels(PARAMS)] == [("selinux-not-tested", "warning")]
    assert "permissive" in host_findings.labels(PARAMS)[0]["message"]
    write("/data/selinux/enforce", "1")
    assert [(one["name"], one["severity"]) for one in host_findings.labels(PARAMS)] == [("selinux-not-tested", "warning")]
    assert machine.relaxations()["selinux"] is True
    selinux.KERNEL = kernel
    assert machine.relaxations()["selinux"] is False


def distributions_are_tested_written_for_or_refused() -> None:
    def is_found(release: str, *wanted: str, allowed: bool = False) -> None:
        write("/etc/os-release", release)
        seen = findings.distribution({"allow_unsupported_distribution": allowed})
        assert [(one["name"], one["severity"]) for one in seen] == ([wanted] if wanted else []), (release, seen)

    is_found('ID=debian\nVERSION_ID="12"\n')
    is_found('ID=debian\nVERSION_ID="13"\n')
    is_found('ID=ubuntu\nVERSION_ID="22.04"\n', "os-not-tested", "warning")
    is_found('ID=ubuntu\nVERSION_ID="24.04"\n', "os-not-tested", "warning")
    is_found('ID=ubuntu\nVERSION_ID="20.04"\n', "os-unsupported", "error")
    # As each of them writes it.
    for release in (
        'NAME="Red Hat Enterprise Linux"\nVERSION="9.4 (Plow)"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n',
        'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.5"\n',
        'NAME="AlmaLinux"\nID="almalinux"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n',
        'NAME="Oracle Linux Server"\nID="ol"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n',
        'NAME="CentOS Stream"\nID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="9"\n',
    ):
        is_found(release, "os-not-tested", "warning")
        is_found(re.sub('VERSION_ID="9', 'VERSION_ID="8', release), "os-unsupported", "error")
        is_found(re.sub('VERSION_ID="9', 'VERSION_ID="10', release), "os-unsupported", "error")
        is_found(re.sub('VERSION_ID="9', 'VERSION_ID="10', release), "os-unsupported", "warning", allowed=True)
    is_found('ID=fedora\nVERSION_ID=42\n', "os-unsupported", "error")
    is_found("", "os-unsupported", "error")
    assert "or version 9 of RHEL, Rocky Linux" in findings.distribution({"allow_unsupported_distribution": False})[0]["message"]


def reservations_follow_the_size() -> None:
    def numbers(size_mib: int, cpus: int, etcd: bool = False) -> tuple:
        """(MiB, thousandths of a CPU) together."""
        parts = reserved(size_mib, cpus, etcd).values()
        return tuple(sum(int(re.fullmatch(r"(\d+)(Mi|m)", part[key]).group(1)) for part in parts) for key in ("memory", "cpu"))

    assert numbers(1024, 1) == (256, 60)
    assert numbers(4096, 2) == (1024, 70)
    assert numbers(16384, 4) == (2663, 80), numbers(16384, 4)
    assert reserved(8192, 4, False) == {
        "kubeReserved": {"cpu": "60m", "memory": "1382Mi"},
        "systemReserved": {"cpu": "20m", "memory": "461Mi"},
    }, reserved(8192, 4, False)
    assert numbers(2048, 2, etcd=True) == (512 + 205, 170), numbers(2048, 2, etcd=True)
    assert numbers(262144, 64, etcd=True)[0] - numbers(262144, 64)[0] == 2048
    for size in (512, 1024, 2048, 4096, 65536, 1 << 20):
        assert numbers(size, 1, etcd=True)[0] < size * 0.4, size


def the_machine_says_what_it_permits() -> None:
    said = play(host_info, report="facts", must_be_clean=False)[0]["ansible_facts"]["clusterwright_machine"]
    assert said["reserved"] == reserved(machine.memory_mib(), os.cpu_count(), False)
    before = machine.text("/proc/self/oom_score_adj")
    # As root of this machine would: some machines refuse it, whatever their capabilities say.
    permitted = "denied" not in sh("bash", "-c", "echo -999 2>&1 > /proc/self/oom_score_adj || echo denied", ok=False)
    assert said["may_lower_oom_score"] == permitted, (said, permitted)
    assert machine.text("/proc/self/oom_score_adj") == before


assert found() == [], found()
a_packaged_drop_in_is_found()
a_sysctl_that_comes_after_ours_is_found()
swap_that_comes_back_is_found()
an_active_firewall_is_found()
a_policy_without_containers_is_found()
distributions_are_tested_written_for_or_refused()
reservations_follow_the_size()
the_machine_says_what_it_permits()
