"""Where SELinux is at work, what is put on a machine has the labels of its policy, the balancer's programs are let to its ports, and a
reset takes that back; elsewhere nothing of it is called.

restorecon, chcon and setsebool are stand-ins that note how they were called; their sentences are those of the real ones. The kernel's and
the policy's files are written here. Labels are real attributes of files."""

import io
import json
import os
import pathlib
import tarfile

from machine_world import Call, enter, play, program, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import (  # noqa: E402
    authorized_keys,
    membership,
    pod_network,
    selinux,
    units,
)
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import artifacts, load_balancer, prepare, reset  # noqa: E402

CALLS = pathlib.Path("/data/calls")
KERNEL = selinux.KERNEL = "/data/selinux"
CONTEXTS = "/etc/selinux/targeted/contexts/files/file_contexts"
NOTE = 'echo "${0##*/} $*" >> /data/calls'


def calls(of: str = "") -> list:
    """What was called since the last look."""
    lines, _gone = CALLS.read_text(encoding="ascii").splitlines(), CALLS.write_text("", encoding="ascii")
    return [line for line in lines if line.startswith(of)]


def refused(what, *parts: str) -> None:
    try:
        what()
        raise AssertionError("it was made")
    except StepFailure as failure:
        assert failure.reason == "SELinuxFailed" and all(part in failure.message for part in parts), failure.message


def at_work(mode: str = "1", containers: bool = True) -> None:
    write(f"{KERNEL}/enforce", mode)
    write("/etc/selinux/config", "SELINUX=enforcing\n# SELINUXTYPE= can take one of three values\nSELINUXTYPE=targeted\n")
    write(CONTEXTS, "/usr/local/s?bin/runc\t--\tsystem_u:object_r:container_runtime_exec_t:s0\n" if containers else "/usr/bin -- bin_t\n")
    for name in load_balancer.BOOLEANS:
        write(f"{KERNEL}/booleans/{name}", "0 0\n")


CALLS.write_text("", encoding="ascii")
# It labels a path once; what it did before, it does not say again.
program("restorecon", f"""{NOTE}
[ ! -e /data/fails ] || {{ echo "restorecon: Could not set context for $4:  Operation not supported" >&2; exit 255; }}
says="Relabeled"; dry=""
for word; do case $word in -n) dry=1; says="Would relabel" ;; -*) ;; *)
  [ -e "$word" ] || {{ echo "restorecon: lstat($word) failed: No such file or directory" >&2; exit 255; }}
  grep --quiet --line-regexp "$word" /data/labelled && continue
  [ -n "$dry" ] || echo "$word" >> /data/labelled
  before="unconfined_u:object_r:var_lib_t:s0"
  [ "$word" != /var/lib/kubelet ] || before="<no context>"
  [[ " $* " != *" -v "* ]] || echo "$says $word from $before to system_u:object_r:container_var_lib_t:s0" ;;
esac; done""")  # fmt: skip
program("chcon", f"""{NOTE}
[[ "$1 $2" == "--type bin_t" ]] || exit 1; shift 2
for path; do python3 -c 'import os, sys; os.setxattr(sys.argv[1], "security.selinux", b"unconfined_u:object_r:bin_t:s0\\0")' "$path"; done""")
program("setsebool", f"""{NOTE}
[ ! -e /data/fails ] || {{ echo "Could not change active booleans: Invalid boolean" >&2; exit 1; }}
[[ $1 == -P ]] || exit 1; shift
for word; do echo "${{word#*=}} ${{word#*=}}" > "{KERNEL}/booleans/${{word%=*}}"; done""")  # fmt: skip
write("/data/labelled", "")

# Without SELinux, and where the policy has nothing for containers, nothing is called.
for containers in (None, False):
    if containers is not None:
        at_work(containers=containers)
    assert not selinux.knows_containers()
    selinux.restore(["/etc/hosts"])
    assert selinux.label_directories(False) == [] and selinux.allow(load_balancer.BOOLEANS, False) == []
    assert selinux.label_program("/etc/hosts", False) == []
    selinux.forget()
    assert calls() == [] and not os.path.exists("/var/lib/kubelet") and not os.path.exists("/opt/cni")

# Directories that have labels of their own are made and labelled before anything is put into them, whether it refuses or only warns.
PREPARE = {
    "cluster": {"identity": "a", "name": "a"}, "sysctl": {}, "modules": [], "configured_sysctl": {}, "configured_modules": [],
    "configured_authorities": [], "machine_settings": {}, "user": "root", "login_keys": [], "swap_off": False, "leave_routes": False,
    "hosts": [],
}  # fmt: skip
at_work("0")
assert selinux.mode() == "permissive" and selinux.knows_containers()
at_work()
os.makedirs("/var/lib/cni")
differing = play(prepare, True, **PREPARE)[0]["differences"]
assert set(selinux.DIRECTORIES) <= set(differing) and not os.path.exists("/var/lib/kubelet"), differing
calls()
differing = play(prepare, **PREPARE)[0]["differences"]
assert set(selinux.DIRECTORIES) <= set(differing) and len(differing) == len(set(differing)), differing
assert calls() == [f"restorecon -v -F {' '.join(selinux.DIRECTORIES)}"]
assert {path: os.stat(path).st_mode & 0o777 for path in selinux.DIRECTORIES if path != "/var/lib/cni"} == {
    path: mode for path, mode in selinux.DIRECTORIES.items() if path != "/var/lib/cni"
}
assert play(prepare, True, **PREPARE)[0]["differences"] == [] and play(prepare, **PREPARE)[0]["differences"] == []
# Another one has relabelled it.
write("/data/labelled", "".join(f"{path}\n" for path in selinux.DIRECTORIES if path != "/var/lib/kubelet"))
assert play(prepare, True, **PREPARE)[0]["differences"] == ["/var/lib/kubelet"]
assert play(prepare, **PREPARE)[0]["differences"] == ["/var/lib/kubelet"] and play(prepare, True, **PREPARE)[0]["differences"] == []
write("/data/fails")
refused(lambda: prepare.work(Call(**PREPARE)), "failed to label directories of the cluster", "Operation not supported")
os.unlink("/data/fails")
calls()


class Bundle:
    """One with a program and an archive."""

    def __init__(self, _options: dict) -> None:
        pass

    def resolve(self, wanted: list) -> list:
        kinds = {"runc": "file", "containerd": "archive"}
        return [{"name": one["name"], "version": "1", "arch": "amd64", "sha256": "0" * 64, "kind": kinds[one["name"]]} for one in wanted]

    def fetch_all(self, found: list, then) -> None:
        for artifact in found:
            path = write(f"/data/{artifact['name']}", "program\n")
            if artifact["kind"] == "archive":
                with tarfile.open(path, "w") as out:
                    for name in ("containerd", "ctr"):
                        member = tarfile.TarInfo(f"bin/{name}")
                        member.size = 2
                        out.addfile(member, io.BytesIO(b"x\n"))
            then(artifact, path)


artifacts.Bundle = Bundle
wanted = [
    {"name": "runc", "directory": "/usr/local/bin", "strip": 0, "only": None},
    {"name": "containerd", "directory": "/usr/local/bin", "strip": 1, "only": ["containerd"]},
]
done, failure = play(artifacts, wanted=wanted, bundle={})
assert failure is None and calls() == ["restorecon -F /usr/local/bin/runc", "restorecon -F /usr/local/bin/containerd"], (done, failure)
assert play(artifacts, wanted=wanted, bundle={})[1] is None and calls() == [], "what is in its place stays"
# One that could not be labelled is put there again.
records = json.loads(pathlib.Path(membership.ARTIFACTS).read_text(encoding="ascii"))
membership.save(membership.ARTIFACTS, {name: record for name, record in records.items() if name != "runc"})
write("/data/fails")
refused(lambda: artifacts.work(Call(wanted=wanted, bundle={})), "/usr/local/bin/runc")
os.unlink("/data/fails")
assert "runc" not in membership.read(membership.ARTIFACTS)
assert play(artifacts, wanted=wanted, bundle={})[1] is None and calls()[-1] == "restorecon -F /usr/local/bin/runc"

# A file of keys that is made anew.
write("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
authorized_keys.apply("root", ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== one"], [], False)
assert calls() == ["restorecon -F /root/.ssh /root/.ssh/authorized_keys"]

# The guard lies where systemd may start nothing; what comes into its place later has its directory's label.
os.environ["CLUSTERWRIGHT_FENCED_BY"] = "/var/lib/clusterwright/guard"
guard = write("/var/lib/clusterwright/guard/guard", "guard\n", 0o755)
asked: list = []
units.ensure = lambda unit, restart=False, check=False: asked.append(restart) or restart
what = pod_network.wanted("eth0", "10.220.0.0/16", "10.220.3.0/24", "/script", {})
labels = [f"label of {path}" for path in (os.path.dirname(guard), guard)]
assert set(labels) < set(pod_network.keep(what, check=True)) and calls() == []
assert set(labels) < set(pod_network.keep(what)) and calls() == [f"chcon --type bin_t {os.path.dirname(guard)} {guard}"]
assert selinux.label(guard) == "unconfined_u:object_r:bin_t:s0"
assert pod_network.keep(what) == [] and calls() == [] and asked[-1] is False
os.replace(write(f"{guard}.new", "guard 2\n", 0o755), guard)
assert pod_network.keep(what) == [labels[1], pod_network.UNIT] and calls() == [f"chcon --type bin_t {guard}"] and asked[-1] is True

# Booleans: those that are off are turned on, remembered first, and turned off by a reset; others stay.
write(f"{KERNEL}/booleans/keepalived_connect_any", "1 1\n")
HAPROXY = [f"SELinux boolean {load_balancer.BOOLEANS[0]}"]
assert selinux.allow(load_balancer.BOOLEANS, True) == HAPROXY and calls() == [] and not os.path.exists(selinux.KNOWN)
write("/data/fails")
refused(lambda: selinux.allow(load_balancer.BOOLEANS, False), "failed to turn on haproxy_connect_any: Could not change active booleans")
os.unlink("/data/fails")
assert membership.read(selinux.KNOWN) == {"booleans": ["haproxy_connect_any"]}, "an attempt that is cut short"
calls()
load_balancer.check_variables, units.ensure_read = lambda _params: "eth0", lambda *_words: False
ENDPOINT = {"virtual_ip": "192.0.2.9", "port": 6443, "router_id": 51, "address": "192.0.2.1", "backends": ["192.0.2.1:6443"], "ca": "x",
            "health_port": 8405, "ca_path": "/etc/kubernetes/pki/ca.crt", "health_path": "/readyz"}  # fmt: skip
assert set(HAPROXY) < set(play(load_balancer, True, **ENDPOINT)[0]["written"]) and calls() == [], "the step asks for it"
assert selinux.allow(load_balancer.BOOLEANS, False) == HAPROXY and calls() == ["setsebool -P haproxy_connect_any=1"]
assert selinux.allow(load_balancer.BOOLEANS, False) == [] and calls() == []
os.unlink(f"{KERNEL}/booleans/haproxy_connect_any")
assert selinux.allow(load_balancer.BOOLEANS, False) == [], "a policy that has no such one"
write(f"{KERNEL}/booleans/haproxy_connect_any", "1 1\n")
sh("rm", "-rf", "/var/lib/clusterwright")
result, failure = play(reset, login_keys=[])
assert failure is None and calls("setsebool") == ["setsebool -P haproxy_connect_any=0"], (result, failure)
assert pathlib.Path(f"{KERNEL}/booleans/keepalived_connect_any").read_text(encoding="ascii") == "1 1\n"
assert not os.path.exists(selinux.KNOWN)
play(reset, login_keys=[])
assert calls("setsebool") == []
