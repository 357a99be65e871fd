"""The reader of the executor takes all that machines need from upstream's servers: catalogue, CA, proxy, Kubernetes, cache, lock or none."""

import json
import os
import pathlib
import sys

try:
    import yaml
except ImportError:
    # Ansible's own Python has it.
    cache = os.environ.get("CLUSTERWRIGHT_CACHE") or os.path.expanduser("~/.cache/clusterwright")
    os.execv(f"{cache}/venv/bin/python", [f"{cache}/venv/bin/python", *sys.argv])

from read_bundle import wanted

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle as bundles, downloads
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle

FOLDER, CA, PROXY, KUBERNETES, bundles.CACHE, LOCK = sys.argv[1:]
downloads.ATTEMPTS = 1
folder = pathlib.Path(FOLDER)
sources = yaml.safe_load((folder / "sources.yaml").read_text(encoding="utf-8"))
versions = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in folder.glob("1.*.yaml")}
# As the operator tells runs of the catalogue and of a lock.
catalogue = {"kubernetes": sources["kubernetes"], "components": sources["components"], "versions": versions}
lock = json.loads(pathlib.Path(LOCK).read_text(encoding="utf-8")) if LOCK else {}
options = {
    "catalogue": catalogue,
    "ca": pathlib.Path(CA).read_text(encoding="utf-8"),
    "proxy": {"httpsProxy": PROXY, "noProxy": ["localhost"]},
    "lock": lock and {"images": lock["images"], "files": {url: file["sha256"] for url, file in lock["files"].items()}},
    "kube_version": KUBERNETES,
}
bundle = Bundle(options)
sizes = bundle.fetch_all(bundle.resolve(wanted(KUBERNETES)), lambda _artifact, path: os.path.getsize(path))
assert all(sizes), sizes
print(f"{len(sizes)} artifacts, {sum(sizes)} bytes")
