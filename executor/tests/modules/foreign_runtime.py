"""A container runtime that others installed is refused, and never overwritten or removed; its Pods count, whatever started them."""

import os
import shutil
import subprocess

from machine_world import enter, play, program, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import findings, runtime  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import text  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import container_runtime, host_info, reset  # noqa: E402

SLEEP = "import time; time.sleep(600)"
STARTED = []


def start(path: str, *arguments: str) -> subprocess.Popen:
    """A process by the name of a program."""
    if not os.path.exists(path):
        shutil.copy("/usr/bin/python3", path)
    STARTED.append(subprocess.Popen((path, "-c", SLEEP, *arguments), env={"PYTHONHOME": "/usr"}))
    # Its files are closed for the new program a moment before it has its name.
    while text(f"/proc/{STARTED[-1].pid}/comm") != os.path.basename(path)[:15]:
        assert STARTED[-1].poll() is None, path
    return STARTED[-1]


def leftovers() -> list:
    return play(host_info, report="clean", must_be_clean=False)[0]["clusterwright"]["leftovers"]


def finding() -> list:
    return [(found["name"], found["severity"]) for found in findings.container_runtime({"roles": ["worker"]})]


def docker_is_an_error_with_what_to_do() -> None:
    assert finding() == [] and runtime.own()
    assert play(container_runtime, runtimes=[])[1] is None
    for path in ("/etc/systemd/system/docker.service", "/etc/systemd/system/containerd.service", "/etc/containerd/config.toml"):
        write(path, "[Unit]\nDescription=of a distribution\n")
        assert finding() == [("container-runtime", "error")], path
        message = findings.container_runtime({"roles": ["control-plane"]})[0]["message"]
        assert path in message and "apt-get purge" in message, message
        failure = play(container_runtime, runtimes=[])[1]
        assert failure and failure.reason == "ForeignRuntime" and path in failure.message, failure
        os.unlink(path)
    daemon = start("/usr/local/bin/dockerd")
    assert finding() == [("container-runtime", "error")], "one that no package installed"
    daemon.kill()
    daemon.wait()
    os.unlink("/usr/local/bin/dockerd")
    assert findings.container_runtime({"roles": ["etcd"]}) == []


def a_runtime_whose_program_is_missing_is_refused() -> None:
    gvisor = {"name": "gvisor", "type": "io.containerd.runsc.v1", "configPath": "/etc/containerd/runsc.toml"}
    crun = {"name": "crun", "type": "io.containerd.runc.v2", "binaryName": "/opt/crun"}

    def refused(runtime: dict, what: str) -> None:
        failure = play(container_runtime, runtimes=[runtime])[1]
        assert failure and failure.reason == "RuntimeNotInstalled", failure
        assert f"runtimes[{runtime['name']}]: {what} is not on the machine" in failure.message, failure.message

    refused(gvisor, "containerd-shim-runsc-v1")
    shim = program("containerd-shim-runsc-v1", "exit 0")
    refused(gvisor, "/etc/containerd/runsc.toml")
    write("/etc/containerd/runsc.toml")
    refused({**gvisor, "path": "/opt/shim"}, "/opt/shim")
    refused(crun, "/opt/crun")
    write("/opt/crun", "", 0o755)
    assert play(container_runtime, runtimes=[gvisor, crun])[1] is None
    for path in (shim, "/etc/containerd/runsc.toml", "/opt/crun"):
        os.unlink(path)


def ours_is_none_of_others() -> None:
    write("/etc/systemd/system/containerd.service", "# Written by clusterwright.\n[Service]\nExecStart=/usr/local/bin/containerd\n")
    write("/etc/containerd/config.toml", "# Written by clusterwright.\nversion = 3\n")
    daemon = start("/usr/local/bin/containerd")
    assert finding() == [], runtime.foreign()
    daemon.kill()
    daemon.wait()
    assert play(reset)[1] is None
    assert not os.path.exists("/etc/systemd/system/containerd.service")


def the_runtime_of_others_stays_and_its_pods_do_not() -> None:
    kept = [
        write("/etc/systemd/system/containerd.service", "[Service]\nExecStart=/usr/local/bin/containerd\n"),
        write("/etc/containerd/config.toml", "version = 2\n"),
        write("/var/lib/containerd/meta.db"),
        write("/run/containerd/containerd.sock"),
        write("/opt/cni/bin/bridge"),
    ]
    os.makedirs("/run/containerd/io.containerd.runtime.v2.task/moby/1/rootfs")
    sh("mount", "-t", "tmpfs", "tmpfs", "/run/containerd/io.containerd.runtime.v2.task/moby/1/rootfs")
    write("/etc/kubernetes/kubelet.conf")
    shim = "/usr/local/bin/containerd-shim-runc-v2"
    pod, other = start(shim, "-namespace", "k8s.io", "-id", "1"), start(shim, "-namespace", "moby", "-id", "2")
    assert any(left.startswith("process containerd-shim") and str(pod.pid) in left for left in leftovers()), leftovers()
    assert not any(str(other.pid) in left for left in leftovers()), leftovers()
    failure = play(reset)[1]
    assert failure is None, failure.message
    pod.wait(10)
    assert other.poll() is None, "a container of Docker's was ended"
    assert all(os.path.exists(path) for path in kept), [path for path in kept if not os.path.exists(path)]
    assert "/moby/1/rootfs" in sh("cat", "/proc/self/mounts"), "a file system of Docker's was unmounted"
    assert leftovers() == [], leftovers()
    other.kill()


def a_machine_whose_pods_run_is_not_clean() -> None:
    os.makedirs("/cgroup")
    sh("mount", "-t", "cgroup2", "cgroup2", "/cgroup")
    place = f"/cgroup/clusterwright-test-{os.stat('/root').st_ino}"
    pods = f"{place}/kubepods/burstable/pod1"
    os.makedirs(pods)
    try:
        container = start("/usr/local/bin/nginx")
        with open(f"{pods}/cgroup.procs", "w", encoding="ascii") as target:
            target.write(str(container.pid))
        assert any(left == f"process Pod ({container.pid})" for left in leftovers()), leftovers()
        failure = play(reset)[1]
        assert failure is None, failure.message
        assert container.wait(10) == -9
    finally:
        for process in STARTED:
            process.kill()
            process.wait()
        for folder in (pods, f"{place}/kubepods/burstable", f"{place}/kubepods", place):
            os.rmdir(folder)


docker_is_an_error_with_what_to_do()
a_runtime_whose_program_is_missing_is_refused()
ours_is_none_of_others()
the_runtime_of_others_stays_and_its_pods_do_not()
a_machine_whose_pods_run_is_not_clean()
