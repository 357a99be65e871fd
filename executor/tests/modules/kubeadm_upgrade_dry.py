"""The real kubeadm takes our configuration of an upgrade: its phases are known, and all of them but CoreDNS' are gone through.

A dry run without a cluster, in a mount and a network of its own; kubeadm still writes below /etc/kubernetes."""

import json
import os
import re
import subprocess
import sys

PLACE = sys.argv[1]
if "DRY_INSIDE" not in os.environ:
    own = ["unshare", "--mount", "--net", sys.executable, *sys.argv]
    sys.exit(subprocess.run(own, env={**os.environ, "DRY_INSIDE": "1"}, check=False).returncode)

from ansible_collections.clusterwright.cluster.plugins.modules import kubeadm_upgrade  # noqa: E402

KUBEADM = f"{os.environ['KUBERNETES_PROGRAMS']}/kubeadm"
VERSION = subprocess.run((KUBEADM, "version", "-o", "short"), check=True, capture_output=True, text=True).stdout.strip()
# Nothing here runs containers.
kubeadm_upgrade.SHARED_CHECKS += ("ContainerRuntimeVersion",)
PARAMS = {
    "version": VERSION,
    "image_pull_policy": "IfNotPresent",
    "ignored_checks": [*kubeadm_upgrade.SHARED_CHECKS],
    "timeout_seconds": 300,
    "kube_proxy": True,
}
UPPER, WORK, HOME = f"{PLACE}/upper", f"{PLACE}/work", "/etc/kubernetes"
for folder in (UPPER, WORK):
    os.makedirs(folder)
subprocess.run(("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/etc,upperdir={UPPER},workdir={WORK}", "/etc"), check=True)
os.makedirs(HOME, exist_ok=True)
subprocess.run(("mount", "-t", "tmpfs", "tmpfs", HOME), check=True)
os.makedirs(kubeadm_upgrade.kubelet.PATCHES)


def dry_run(command: str, configuration: dict) -> tuple:
    """(whether it went well, what kubeadm said)."""
    with open(f"{PLACE}/upgrade.yaml", "w", encoding="utf-8") as out:
        json.dump(configuration, out)
    words = [KUBEADM, "upgrade", command, f"--config={PLACE}/upgrade.yaml", "--dry-run", *(["--yes"] if command == "apply" else [])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode == 0, done.stdout + done.stderr


for command in ("apply", "node"):
    well, said = dry_run(command, kubeadm_upgrade.upgrade_configuration(PARAMS))
    assert well and "Finished dryrunning successfully" in said, said[-3000:]
    # Of a field that it does not know it only warns.
    assert "unknown field" not in said, said
    assert not re.search("addon.*coredns", said, re.IGNORECASE), said
    well, said = dry_run(command, kubeadm_upgrade.upgrade_configuration({**PARAMS, "kube_proxy": False}))
    assert well and "unknown field" not in said and not re.search("addon.*kube-proxy", said, re.IGNORECASE), said
    configuration = kubeadm_upgrade.upgrade_configuration(PARAMS)
    configuration[command]["skipPhases"] = ["addon/other"]
    well, said = dry_run(command, configuration)
    assert not well and "invalid phase name: addon/other" in said, said
    configuration[command] = {**kubeadm_upgrade.upgrade_configuration(PARAMS)[command], "other": True}
    assert 'unknown field "' in dry_run(command, configuration)[1]
