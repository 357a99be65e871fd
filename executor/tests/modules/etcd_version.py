"""To which versions a member of etcd can go: by what it says itself, and else by what was installed on its machine last."""

import json
import os
import subprocess

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership
from ansible_collections.clusterwright.cluster.plugins.modules import etcd_version
from etcd_world import PKI, PLACE, PROGRAMS, Machine, expect

RUNS = subprocess.run((f"{PROGRAMS}/etcd", "--version"), check=True, capture_output=True, text=True).stdout.split()[2]
major, minor = (int(part) for part in RUNS.split(".")[:2])
membership.ARTIFACTS = f"{PLACE}/artifacts.json"
a = Machine("a")


def answer(version: str):
    etcd_version.LOCAL = a.client
    return a.play(etcd_version, version=version, data_directory=a.data(), pki_directory=PKI)


def remember(version: str) -> None:
    with open(membership.ARTIFACTS, "w", encoding="utf-8") as out:
        json.dump({"etcd": {"version": version, "sha256": "0" * 64}}, out)


REFUSED = "EtcdVersionNotAllowed"
expect(answer("2.0.0"), False, "a machine without data may have any")
expect(a.join([a], "new"), True, "a member begins")
for wanted, expected in (
    (RUNS, False),
    (f"v{major}.{minor}.0", False),
    (f"{major}.{minor}.99", False),
    (f"{major}.{minor + 1}.0", False),
    (f"{major}.{minor + 2}.0", REFUSED),
    (f"{major + 1}.0.0", REFUSED),
    (f"{major}.{minor - 1}.99", REFUSED),
):
    expect(answer(wanted), expected, f"{RUNS} -> {wanted}")
# What it says goes before what lies there: an attempt may have put another program there that never ran.
remember(f"{major}.{minor + 1}.0")
expect(answer(f"{major}.{minor + 2}.0"), REFUSED, "by what runs")
a.kill()
expect(answer(f"{major}.{minor + 2}.0"), False, "by what is installed, while it does not answer")
expect(answer(RUNS), REFUSED, "that is an older minor")
os.unlink(membership.ARTIFACTS)
expect(answer("9.9.9"), False, "nobody knows what it has")
