# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""The packages of the machine's distribution: by dpkg and apt, or by rpm and dnf, whichever the machine has."""

from __future__ import annotations

from ansible_collections.clusterwright.cluster.plugins.module_utils.command import attempt, find
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import os_release

# What the RHEL family calls a package of Debian's. What is not here has the same name in both.
RPM_NAMES = {
    "conntrack": ("conntrack-tools",),
    "iproute2": ("iproute", "iproute-tc"),
    "iptables": ("iptables-nft",),
    "procps": ("procps-ng",),
}
INSTALL_TIMEOUT = 600


class Apt:
    """Debian and Ubuntu."""

    PROGRAMS = ("dpkg-query", "apt-get")
    FAMILIES = ("debian",)
    ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none", "NEEDRESTART_MODE": "l"}
    LOCK_WAIT = "-oDPkg::Lock::Timeout=120"
    # For messages.
    INSTALL = "apt-get install"
    REMOVE = "apt-get purge"
    OWNER = "dpkg -S"
    TIME_SERVICE = "apt-get install systemd-timesyncd, then timedatectl set-ntp true"
    # Packages that the kernel's modules are in, each with the kernel's release, where an installation may have come without.
    KERNEL_MODULES = ()

    def names(self, packages: list) -> list:
        return list(packages)

    def missing(self, packages: list) -> list:
        """Those that are not installed."""
        output = attempt("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages)
        installed = {line.split()[0] for line in output.out.splitlines() if line.endswith(" installed")}
        return [package for package in packages if package not in installed]

    def install(self, packages: list, environment: dict) -> str:
        """Installs them, with fresh lists only when the known ones do not do. What went wrong, or nothing."""
        given = {**self.ENVIRONMENT, **environment}
        arguments = ("apt-get", "-q", "-y", self.LOCK_WAIT, "--no-install-recommends", "install", *packages)
        if attempt(*arguments, timeout=INSTALL_TIMEOUT, env=given).ok:
            return ""
        update = attempt("apt-get", "-q", self.LOCK_WAIT, "update", timeout=300, env=given)
        second = attempt(*arguments, timeout=INSTALL_TIMEOUT, env=given)
        if second.ok:
            return ""
        return second.said if update.ok else f"{update.said}\n{second.said}"


class Dnf:
    """RHEL and its family."""

    PROGRAMS = ("rpm", "dnf")
    FAMILIES = ("rhel", "fedora", "centos")
    # For messages.
    INSTALL = "dnf install"
    REMOVE = "dnf remove"
    OWNER = "rpm -qf"
    TIME_SERVICE = "dnf install chrony, then systemctl enable --now chronyd"
    KERNEL_MODULES = ("kernel-modules", "kernel-modules-extra")

    def names(self, packages: list) -> list:
        return [name for package in packages for name in RPM_NAMES.get(package, (package,))]

    def missing(self, packages: list) -> list:
        """Those that are not installed, nor another one in their place. One call for each: of several rpm does not say which is which."""
        return [package for package in packages if not attempt("rpm", "--query", "--quiet", "--whatprovides", package).ok]

    def install(self, packages: list, environment: dict) -> str:
        """Installs them, with fresh metadata only when what is known does not do. What went wrong, or nothing."""
        before = ("dnf", "--quiet", "--assumeyes", "--setopt=install_weak_deps=False")
        if attempt(*before, "install", *packages, timeout=INSTALL_TIMEOUT, env=environment).ok:
            return ""
        second = attempt(*before, "--refresh", "install", *packages, timeout=INSTALL_TIMEOUT, env=environment)
        return "" if second.ok else second.said


ADAPTERS = (Apt(), Dnf())


def present() -> list:
    """The adapters whose programs are on the machine, the one of its distribution first: either may be installed as a tool."""
    release = os_release()
    families = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    found = [adapter for adapter in ADAPTERS if all(map(find, adapter.PROGRAMS))]
    return sorted(found, key=lambda adapter: not families.intersection(adapter.FAMILIES))


def adapter() -> Apt | Dnf:
    """The machine's; a failure where it has none that is known here."""
    found = present()
    if not found:
        raise StepFailure(
            "UnsupportedDistribution",
            "this machine has neither dpkg and apt nor rpm and dnf: Debian, Ubuntu, or RHEL 9 or one of its family is needed",
        )
    return found[0]


def hints() -> Apt | Dnf:
    """The one whose commands a message names; apt's where none is here."""
    return (present() or ADAPTERS)[0]


def has_apt() -> bool:
    """Whether packages come by apt here."""
    return present()[:1] == [ADAPTERS[0]]
