"""Packages are found and installed by what the machine has: dpkg and apt, or rpm and dnf, by the names that they have there.

dpkg-query, apt-get, rpm and dnf are stand-ins: each notes how it was called, and knows the packages of a file."""

import os
import pathlib
import subprocess

from machine_world import enter, play, program, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.module_utils import command, distribution_packages, selinux  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import bootstrap_os  # noqa: E402

SOURCE = pathlib.Path(os.environ["PYTHONPATH"])
INSTALLER = (SOURCE / "roles/bootstrap_os/files/install-from-bundle.sh").read_text(encoding="utf-8")
CALLS = pathlib.Path("/data/calls")
INSTALLED = pathlib.Path("/data/installed")
RHEL = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.5"\n'
DEBIAN = 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n'
PROXY = {"httpProxy": "http://proxy.test:3128", "httpsProxy": "http://proxy.test:3129", "noProxy": [".test", "192.0.2.7"]}
# By default, of the collection itself.
DEFAULTS = (SOURCE / "roles/variables/defaults/main.yml").read_text(encoding="utf-8")
WANTED = [line.strip().removeprefix("- ") for line in DEFAULTS.partition("bootstrap_os_packages:\n")[2].partition("bootstrap_os_load")[0].splitlines()]
NOTE = 'echo "${0##*/} $*${http_proxy:+ by $http_proxy, $https_proxy, not $no_proxy}" >> /data/calls'


def machine(release: str, *installed: str) -> None:
    write("/etc/os-release", release)
    INSTALLED.write_text("".join(f"{name}\n" for name in installed), encoding="ascii")
    CALLS.write_text("", encoding="ascii")


def calls(of: str) -> list:
    """The arguments of each call of the program since the machine was made."""
    lines = CALLS.read_text(encoding="ascii").splitlines()
    return [line.removeprefix(f"{of} ") for line in lines if line.startswith(f"{of} ")]


def rpm_machine() -> None:
    """As rpm says it: nothing and 0, or a sentence and 1. Another package may provide one of that name."""
    program("rpm", f"""{NOTE}
[[ "$1 $2 $3" == "--query --quiet --whatprovides" ]] || exit 2
grep --quiet --line-regexp "$4" /data/installed && exit 0
echo "no package provides $4"; exit 1""")
    program("dnf", f"""{NOTE}
[[ -e /data/stale && " $* " != *" --refresh "* ]] && {{ echo "Error: Unable to find a match: ${{@: -1}}" >&2; exit 1; }}
[[ -e /data/broken ]] && {{ echo "Error: There are no enabled repositories in \\"/etc/yum.repos.d\\"." >&2; exit 1; }}
shift 3; while [[ $1 == --* ]]; do shift; done; [[ $1 == install ]] || exit 2; shift
for name; do echo "$name" >> /data/installed; done""")  # fmt: skip


def apt_machine() -> None:
    program("dpkg-query", f"""{NOTE}
while read -r name; do echo "$name installed"; done < /data/installed; echo "removed-one config-files"; exit 1""")
    program("apt-get", f"""{NOTE}
[[ " $* " == *" update "* ]] && {{ rm -f /data/stale; exit 0; }}
[[ -e /data/stale ]] && {{ echo "E: Unable to locate package" >&2; exit 100; }}
while [[ $1 != install ]]; do shift; done; shift
for name; do echo "$name" >> /data/installed; done""")  # fmt: skip


def bootstrap(check: bool = False, installer: str = "", packages: list = WANTED, proxy: dict = PROXY) -> tuple:
    return play(bootstrap_os, check, packages=packages, installer=installer, repository={"PACKAGES_URL": "http://x"}, proxy=proxy)


# Where there is neither.
command.PATH = "/usr/local/sbin"
machine(RHEL)
assert bootstrap()[1].reason == "UnsupportedDistribution" and "RHEL 9" in bootstrap()[1].message
command.PATH = "/usr/local/sbin:/usr/bin:/bin"

# dpkg is a tool that the RHEL family has as well, and rpm one of Debian's: the distribution decides, and else what there is.
rpm_machine()
apt_machine()
for text, wanted in ((RHEL, "Dnf"), (DEBIAN, "Apt"), ('ID=ubuntu\nID_LIKE=debian\n', "Apt"), ('ID="ol"\nID_LIKE="fedora"\n', "Dnf"), ("", "Apt")):
    machine(text)
    assert type(distribution_packages.adapter()).__name__ == wanted, (text, wanted)

# dnf. What is there is not asked for; of others the name is the family's.
machine(RHEL, "ca-certificates", "iproute", "kmod", "nftables", "python3", "util-linux")
checked, failure = bootstrap(check=True)
DUE = ["conntrack-tools", "ethtool", "iproute-tc", "iptables-nft", "procps-ng", "socat"]
assert failure is None and checked["installed"] == DUE and checked["msg"] == f"missing: {', '.join(DUE)}", checked
assert calls("dnf") == [] and calls("apt-get") == [] and calls("dpkg-query") == []
done, failure = bootstrap()
assert failure is None and done["changed"] and done["installed"] == DUE
assert calls("dnf") == [
    f"--quiet --assumeyes --setopt=install_weak_deps=False install {' '.join(DUE)} by http://proxy.test:3128, http://proxy.test:3129,"
    " not .test,192.0.2.7"
], calls("dnf")
done, failure = bootstrap()
assert failure is None and not done["changed"] and len(calls("dnf")) == 1, "a second pass installs nothing"
done, failure = bootstrap(packages=["haproxy", "keepalived", "own-tool"], proxy={})
assert failure is None and calls("dnf")[1].endswith("install haproxy keepalived own-tool"), "names that are one in both, and no proxy"

# What dnf knows of its repositories is old; then none has it.
machine(RHEL)
write("/data/stale")
assert bootstrap(packages=["socat"], proxy={})[1] is None
assert [("--refresh" in call) for call in calls("dnf")] == [False, True]
machine(RHEL)
write("/data/broken")
failure = bootstrap(packages=["socat"])[1]
assert failure.reason == "PackageNotFound" and "There are no enabled repositories" in failure.message, failure.message
os.unlink("/data/broken")
os.unlink("/data/stale")

# SELinux needs the policy of containers before anything is put here, and nothing where it is not at work.
selinux.KERNEL = "/data/selinux"
for mode, wanted in (("1", ["policycoreutils", "container-selinux"]), ("0", ["policycoreutils", "container-selinux"]), ("", [])):
    write("/data/selinux/enforce", mode)
    machine(RHEL, "socat")
    assert bootstrap(check=True, packages=["socat"])[0]["installed"] == wanted, mode
write("/data/selinux/enforce", "1")
machine(DEBIAN, "socat")
assert bootstrap(check=True, packages=["socat"])[0]["installed"] == [], "Debian has no such package"
os.unlink("/data/selinux/enforce")

# A bundle's packages are apt's: that is said where they would be needed, and not where all is there.
machine(RHEL)
failure = bootstrap(installer=INSTALLER, packages=["socat", "conntrack"])[1]
assert failure.reason == "PackageNotFound" and calls("dnf") == [], failure
assert "socat, conntrack-tools missing" in failure.message and "spec.artifacts.osPackages brings packages for apt alone" in failure.message
assert "dnf install socat conntrack-tools" in failure.message
machine(RHEL, "socat")
assert bootstrap(installer=INSTALLER, packages=["socat"])[1] is None
bare = {"PATH": "/data/empty", "PACKAGES_URL": "http://x", "PACKAGES_KEY": "k"}
said = subprocess.run(["/bin/sh", "-s", "--", "python3"], input=INSTALLER, env=bare, capture_output=True, text=True, check=False)
assert said.returncode == 1 and "brings packages for apt alone" in said.stderr and "install python3 by hand" in said.stderr, said

# apt, as ever: fresh lists only when the known ones do not do.
machine(DEBIAN, "ca-certificates", "ethtool", "iproute2", "iptables", "kmod", "nftables", "procps", "python3", "socat", "util-linux")
done, failure = bootstrap()
assert failure is None and done["installed"] == ["conntrack"]
known = "-q -y -oDPkg::Lock::Timeout=120 --no-install-recommends install conntrack by http://proxy.test:3128"
assert len(calls("apt-get")) == 1 and calls("apt-get")[0].startswith(known), calls("apt-get")
machine(DEBIAN)
write("/data/stale")
assert bootstrap(packages=["removed-one"], proxy={})[1] is None, "one whose configuration stayed is not installed"
assert [("update" in call) for call in calls("apt-get")] == [False, True, False]
assert calls("dnf") == [] and calls("rpm") == []

# Python itself, by the shell alone: the task's text, without what is templated.
task = (SOURCE / "roles/bootstrap_os/tasks/main.yml").read_text(encoding="utf-8")
script = task.partition("raw: |\n")[2].partition("\n  args:")[0].partition("{% endif %}\n    if ! command")[2]
script = "if ! command" + script
only_dnf = {"PATH": "/data/bin:/usr/bin:/bin"}
os.makedirs("/data/bin")
for name in ("rpm", "dnf"):
    sh("mv", f"/usr/local/sbin/{name}", f"/data/bin/{name}")
hidden = script.replace("command -v apt-get", "command -v no-such-apt-get")
machine(RHEL)
said = subprocess.run(["/bin/sh", "-c", hidden], env=only_dnf, capture_output=True, text=True, check=False)
assert said.returncode == 0 and said.stdout == "installed\n", said
assert calls("dnf") == ["--quiet --assumeyes --setopt=install_weak_deps=False install python3"] and calls("apt-get") == []
write("/data/broken")
said = subprocess.run(["/bin/sh", "-c", hidden], env=only_dnf, capture_output=True, text=True, check=False)
assert said.returncode and "installed" not in said.stdout and "no enabled repositories" in said.stderr, said
for name in ("rpm", "dnf"):
    os.unlink(f"/data/bin/{name}")
said = subprocess.run(["/bin/sh", "-c", hidden], env=only_dnf, capture_output=True, text=True, check=False)
assert said.returncode == 1 and "neither apt-get nor dnf is here" in said.stderr, said
