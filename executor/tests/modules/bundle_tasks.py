"""Every task of ours that reads the bundle is given all of it: address, trust, login, components and version of Kubernetes."""

import os
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    # Ansible's own Python has it.
    cache = os.environ.get("CLUSTERWRIGHT_CACHE") or os.path.expanduser("~/.cache/clusterwright")
    os.execv(f"{cache}/venv/bin/python", [f"{cache}/venv/bin/python", *sys.argv])

from ansible_collections.clusterwright.cluster.plugins.module_utils.arguments import GROUPS
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle_source import FIELDS

HOME = pathlib.Path(__file__).resolve().parents[2] / "ansible"
COLLECTION = "clusterwright.cluster."
IMPORTS = re.compile(r"module_utils(?:\.(\w+) import|\s+import ([\w, ]+))")


def imported(path: pathlib.Path) -> set:
    """The module_utils that a file imports."""
    found = set()
    for one, several in IMPORTS.findall(path.read_text(encoding="utf-8")):
        found |= {one} if one else {name.strip() for name in several.split(",")}
    return found


def readers() -> set:
    """Modules that read the bundle, be it through others."""
    reading = {"bundle"}
    utils = {path.stem: imported(path) for path in (HOME / "plugins/module_utils").glob("*.py")}
    while more := {name for name, needs in utils.items() if needs & reading} - reading:
        reading |= more
    return {path.stem for path in (HOME / "plugins/modules").glob("*.py") if imported(path) & reading}


def tasks(value: object):
    """Every mapping in the YAML: plays and blocks hold tasks at any depth."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from tasks(item)


modules = readers()
EXPECTED = {"artifacts", "images", "karmada_programs", "kubeadm_pause", "prefetch", "preflight", "preflight_upgrade", "smoke_test", "worker_smoke_test"}
assert modules == EXPECTED, modules
option = GROUPS["bundle"]["bundle"]
assert (option["type"], option["required"]) == ("dict", True), option
for module in modules:
    source = (HOME / "plugins/modules" / f"{module}.py").read_text(encoding="utf-8")
    documentation = yaml.safe_load(re.search(r'DOCUMENTATION = r"""(.*?)"""', source, re.DOTALL).group(1))
    groups = documentation["extends_documentation_fragment"]
    assert f"{COLLECTION}arguments.bundle" in groups, (module, groups)
    assert "bundle" not in documentation["options"], module

seen = []
for path in sorted([*HOME.glob("roles/*/tasks/*.yml"), *HOME.glob("roles/*/handlers/*.yml"), *HOME.glob("playbooks/**/*.yml")]):
    for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
        for module in modules:
            arguments = task.get(COLLECTION + module)
            if arguments is not None:
                seen.append(module)
                assert arguments.get("bundle") == "{{ artifacts_bundle }}", f"{path}: {task.get('name')}: {arguments}"
assert set(seen) == modules, seen

defaults = yaml.safe_load((HOME / "roles/variables/defaults/main.yml").read_text(encoding="utf-8"))
assert set(defaults["artifacts_bundle"]) == FIELDS, defaults["artifacts_bundle"]
