"""A machine of its own inside this one, so that modules may really delete, unmount and cut: private mounts, network and processes
below a root that shares only programs with this machine."""

import os
import subprocess
import sys

PLACE = sys.argv[1]
INSIDE = "CLUSTERWRIGHT_INSIDE"
# What the script and the modules are imported from, and what else a script needs there: it says so before it imports this.
MORE = filter(None, os.environ.get("MACHINE_SOURCES", "").split(":"))
SOURCES = (os.path.dirname(os.path.realpath(__file__)), os.environ["PYTHONPATH"], *MORE)
# Everything that a module could change is made new; nothing below is this machine's own.
EMPTY = ("etc", "root", "run", "run/netns", "tmp", "var/lib", "var/log", "opt", "data", "proc", "sys", "dev", "usr")


def sh(*argv: str, ok: bool = True) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not ok, f"{' '.join(argv)}: {done.stderr}"
    return done.stdout


def enter() -> None:
    """Goes on in the machine; returns there only. The machine ends with the script."""
    if INSIDE not in os.environ:
        unshare = ("unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--propagation", "private")
        again = (*unshare, "/usr/bin/python3", os.path.abspath(sys.argv[0]), PLACE)
        os.execvpe("unshare", again, {**os.environ, INSIDE: "1"})
    assert os.getpid() == 1, "the machine has processes of its own"
    root = f"{PLACE}/root"
    os.makedirs(root)
    # On the disk of this machine: what a module calls a local file system.
    sh("mount", "--bind", root, root)
    for name in EMPTY:
        os.makedirs(f"{root}/{name}", exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink(f"usr/{name}", f"{root}/{name}")
    sh("mount", "--bind", "-o", "ro", "/usr", f"{root}/usr")
    for name in ("local", "local/sbin", "local/bin"):
        if name == "local":
            sh("mount", "-t", "tmpfs", "tmpfs", f"{root}/usr/local")
        else:
            os.makedirs(f"{root}/usr/{name}")
    for name in ("alternatives", "protocols", "services", "iproute2", "ld.so.cache"):
        if os.path.isdir(f"/etc/{name}"):
            sh("cp", "-a", f"/etc/{name}", f"{root}/etc/{name}")
        elif os.path.exists(f"/etc/{name}"):
            sh("cp", "-a", f"/etc/{name}", f"{root}/etc/")
    sh("mount", "-t", "proc", "proc", f"{root}/proc")
    sh("mount", "-t", "sysfs", "sysfs", f"{root}/sys")
    sh("mount", "--rbind", "/dev", f"{root}/dev")
    for source in SOURCES:
        os.makedirs(root + source)
        sh("mount", "--bind", source, root + source)
    sh("mount", "-t", "bpf", "bpf", f"{root}/sys/fs/bpf")
    os.chdir(root)
    os.makedirs("old")
    sh("pivot_root", ".", "old")
    os.chdir("/")
    sh("umount", "--lazy", "/old")
    os.rmdir("/old")
    sh("ip", "link", "set", "lo", "up")
    write("/etc/hosts", "127.0.0.1 localhost\n")
    program("systemctl", "exit 0")
    program("journalctl", "exit 0")


def write(path: str, content: str = "content\n", mode: int = 0o644) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as target:
        target.write(content)
    os.chmod(path, mode)
    return path


def program(name: str, text: str) -> str:
    """A stand-in for a program, before the real one in PATH."""
    return write(f"/usr/local/sbin/{name}", f"#!/bin/bash\n{text}\n", 0o755)


class Call:
    """A module's call."""

    def __init__(self, check_mode: bool = False, **params: object) -> None:
        self.params, self.check_mode = params, check_mode


def play(module, check_mode: bool = False, **params: object) -> tuple:
    """(result, failure) of a module's work."""
    from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure

    try:
        return module.work(Call(check_mode, **params)), None
    except StepFailure as failure:
        return failure.extra.get("clusterwright"), failure
