"""Machines report which components they resolved, and which ones they have; what is none of the cluster's is not among them."""

from bundle_world import ARCH, PLACE, Served, digest, entry

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output
from ansible_collections.clusterwright.cluster.plugins.modules import artifacts, host_info, images

membership.ARTIFACTS = str(PLACE / "artifacts.json")
PAUSE, CALICO = "registry.k8s.io/pause", "docker.io/calico/node"
PRESENT: list = []
images.attempt = lambda *_arguments, **_options: Output(0, "\n".join(PRESENT), "")
served = Served(
    entry("kubelet", "1.35.4"), entry("runc", "1.5.2"), entry(PAUSE, "3.9", kind="image"), entry(PAUSE, "3.10", kind="image"),
    entry(CALICO, "v3.30.0", kind="image"), entry("runc", "1.5.3", arch="other"),
)


def component(name: str, version: str) -> dict:
    return {"name": name, "version": version, "arch": ARCH, "sha256": digest(name, version)}


def work(module, check_mode: bool = False, **params: object) -> dict:
    params = {"bundle": served.options(components=params.pop("components", {})), **params}
    return module.work(type("Call", (), {"params": params, "check_mode": check_mode}))


def program(name: str, installed: bool = True) -> dict:
    return {"name": name, "directory": str(PLACE / "bin") if installed else None, "strip": 0, "only": None}


def components_of(result: dict) -> list:
    assert result["clusterwright"]["kind"] == "components", result
    return result["clusterwright"]["components"]


def found() -> list:
    return components_of(work(host_info, report="components", must_be_clean=False))


assert found() == [], "a machine that has nothing says so"

# Of programs, those that are installed; that a version was only looked up is nothing that the machine has.
wanted = [program("runc"), program("kubelet"), program(PAUSE, installed=False)]
programs = [component("kubelet", "1.35.4"), component("runc", "1.5.2")]
first = work(artifacts, wanted=wanted)
assert first["changed"] and components_of(first) == programs
again = work(artifacts, wanted=wanted)
assert not again["changed"] and components_of(again) == programs, "also when there is nothing to do"
assert "clusterwright" not in work(artifacts, check_mode=True, wanted=wanted), "a probe resolves, and decides nothing"
assert found() == programs

# Of images, those wanted by name.
everything = [component("kubelet", "1.35.4"), component(PAUSE, "3.10"), component("runc", "1.5.2")]
result = work(images, wanted=[{"name": PAUSE}], also_all_others=True, ahead=False)
assert result["imported"] == [f"{PAUSE}:3.10", f"{CALICO}:v3.30.0"], result
assert components_of(result) == [component(PAUSE, "3.10")]
assert "clusterwright" not in work(images, check_mode=True, wanted=[{"name": PAUSE}], also_all_others=True, ahead=False)
assert found() == everything

# An older tag that comes later is not the newest; a record that nobody understands is none.
result = work(images, wanted=[{"name": PAUSE}], also_all_others=False, ahead=False, components={PAUSE: {"version": "3.9"}})
assert components_of(result) == [component(PAUSE, "3.9")]
assert found() == everything, "of several tags, the newest"
records = membership.read(membership.ARTIFACTS)
membership.save(membership.ARTIFACTS, {**records, "a": 1, "b": {"sha256": 2}, "c": {"sha256": "0"}, "image:d": {"sha256": "0"}})
assert found() == everything
