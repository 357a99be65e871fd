"""A machine of a Karmada control plane is judged by what that needs: its ports, the room for its programs and for etcd, haproxy; and by
nothing that only a kubelet or Pods need."""

from machine_world import enter, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import (  # noqa: E402
    findings,
    firewalld,
    host_findings,
    karmada,
    machine,
    membership,
)

# A machine with swap in memory, cgroups v1, a package's drop-ins, and all but the programs of a plane.
machine.container = lambda: ""
machine.swaps = lambda: ["/dev/zram0"]
machine.cgroup_version = lambda: 1
machine.memory_mib = lambda: 4096
findings.find = lambda program: program in findings.PLANE_PROGRAMS
findings.listening = lambda: {8443, 10357, 6443}
write("/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", "[Service]\nExecStart=/other\n")


def judged(*roles: str, plane: bool = True, **more: object) -> dict:
    """Messages by name."""
    params = {
        "roles": list(roles), "plane": plane, "identity": "uid", "virtual_ip": "", "kube_proxy_mode": "", "memory_minimum_mib": 1024,
        "memory_recommended_mib": 2048, "disk_minimum_mib": 1, "pod_cidr": "", "ignore": [], **more,
    }  # fmt: skip
    checks = (findings.hardware, findings.kernel, findings.remains, findings.container_runtime, host_findings.drop_ins, host_findings.zram)
    return {finding["name"]: finding["message"] for check in checks for finding in check(params)}


node = judged("control-plane", plane=False)
assert {"cgroup-v1", "swap", "zram-swap", "programs", "unit-drop-in", "ports"} <= set(node) and node["ports"].startswith("ports in use: 6443:"), node
plane = judged("karmada-control-plane", "etcd")
assert not {"cgroup-v1", "swap", "zram-swap", "unit-drop-in"} & set(plane), plane
assert plane["ports"].startswith("ports in use: 8443, 10357:") and plane["programs"].startswith("programs are missing: haproxy:"), plane
assert set(judged("etcd")) <= {"disk"}, "nothing of a control plane"
assert "keepalived" in judged("karmada-control-plane", virtual_ip="192.0.2.1")["programs"]

# Room for two versions of its programs, and for data where that has a file system of its own.
wanted = {"roles": ["karmada-control-plane", "etcd"], "disk_minimum_mib": 4096}
assert findings.room(wanted) == {"/var/lib": 4096, "/usr/local": 1024, "/opt": 2048}
findings.os.path.ismount = lambda path: path == "/var/lib/etcd"
assert findings.room(wanted)["/var/lib/etcd"] == 1024 and "/opt" not in findings.room({**wanted, "roles": ["etcd"]})

# What others send to it, as the message for administrators of firewalls has it.
asked = {"roles": ["karmada-control-plane"], "virtual_ip": "192.0.2.1", "pod_cidr": ""}
assert host_findings.accepted(asked) == ["TCP 22", "TCP 5443, 7443, 8443, 9443 and 9444", "VRRP (IP protocol 112)"]
opened = firewalld.commands(asked)
assert all(f"--add-port={port}/tcp" in opened[0] for port in karmada.SERVING) and "--add-protocol=vrrp" in opened[1], opened
assert not any("--add-source" in line for line in opened), "it has no Pods"
firewalld.running = lambda: True
said = host_findings.firewall({**asked, "identity": "uid", "plane": True})[0]["message"]
assert "Pods" not in said and "TCP 5443" in said, said
write(membership.CLUSTER, '{"identity": "uid"}\n')
assert not {"ports", "karmada-files", "leftovers"} & set(judged("karmada-control-plane")), "what is there is its own"
