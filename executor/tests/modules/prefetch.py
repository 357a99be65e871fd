"""Programs lie ready before the run that installs them: that run downloads nothing, and until then nothing is switched."""

import hashlib
import json
import os
import pathlib

from bundle_world import PLACE, Served, bundles, content_of, digest, entry, refused

from ansible_collections.clusterwright.cluster.plugins.module_utils import membership, prefetched
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output
from ansible_collections.clusterwright.cluster.plugins.modules import artifacts, images, kubeadm_pause, prefetch

BIN = PLACE / "bin"
membership.ARTIFACTS = str(PLACE / "artifacts.json")
prefetched.FOLDER = f"{bundles.CACHE}/prefetched"
OLD = [entry("kubelet", "1.34.4"), entry("kubeadm", "1.34.4")]
NEW = [entry("kubelet", "1.35.4"), entry("kubeadm", "1.35.4")]
served = Served(*OLD, *NEW)


def wanted(version: str) -> list:
    programs = [{"name": name, "version": version, "directory": str(BIN), "strip": 0, "only": None} for name in ("kubelet", "kubeadm")]
    return [*programs, {"name": "kubelet", "version": version, "directory": None, "strip": 0, "only": None}]


def play(module, check: bool = False, **params: object) -> dict:
    return module.work(type("Call", (), {"params": {"bundle": served.options(), **params}, "check_mode": check}))


def programs() -> dict:
    return {path.name: path.read_text(encoding="utf-8") for path in BIN.iterdir()}


def asked() -> list:
    """What was downloaded since the last time, beside the index."""
    names = sorted(name for name in served.asked if name != "index.json")
    served.asked.clear()
    return names


def lies_ready() -> list:
    folder = pathlib.Path(prefetched.FOLDER)
    return sorted(path.name.partition("@")[0] for path in folder.iterdir()) if folder.exists() else []


assert play(artifacts, wanted=wanted("1.34.4"))["changed"] and len(asked()) == 2
before = programs()
assert play(prefetch, check=True, wanted=wanted("1.34.4"))["installed"] == [], "what is installed needs no prefetching"

both = ["kubelet 1.35.4", "kubeadm 1.35.4"]
assert play(prefetch, check=True, wanted=wanted("1.35.4"))["installed"] == both and asked() == []
assert play(prefetch, wanted=wanted("1.35.4"))["installed"] == both
assert asked() == ["kubeadm-1.35.4-1", "kubelet-1.35.4-1"]
assert programs() == before and lies_ready() == ["kubeadm", "kubelet"]
assert not play(prefetch, wanted=wanted("1.35.4"))["changed"] and not play(prefetch, check=True, wanted=wanted("1.35.4"))["changed"]
assert asked() == [], "once"

# What was changed or cut off meanwhile is brought anew.
broken = prefetched.place(NEW[0])
pathlib.Path(broken).write_bytes(b"half")
assert play(prefetch, check=True, wanted=wanted("1.35.4"))["installed"] == ["kubelet 1.35.4"]
assert play(prefetch, wanted=wanted("1.35.4"))["changed"] and asked() == ["kubelet-1.35.4-1"]

# An installation that fails leaves it where it is.
place, artifacts.place = artifacts.place, lambda _source, _path: (_ for _ in ()).throw(OSError("no space left on device"))
try:
    play(artifacts, wanted=wanted("1.35.4"))
    raise AssertionError("it went well")
except OSError:
    pass
artifacts.place = place
assert lies_ready() == ["kubeadm", "kubelet"] and programs() == before

done = play(artifacts, wanted=wanted("1.35.4"))
assert sorted(done["installed"]) == sorted(both) and asked() == [], "nothing is downloaded"
assert programs() == {"kubelet": content_of("kubelet", "1.35.4").decode(), "kubeadm": content_of("kubeadm", "1.35.4").decode()}
assert lies_ready() == [] and not play(prefetch, check=True, wanted=wanted("1.35.4"))["changed"], "installed is as good"

# Of a program one version lies ready.
served.say(
    *OLD, *NEW, *(later := [entry("kubelet", "1.35.5"), entry("kubeadm", "1.35.5"), entry("kubelet", "1.35.6"), entry("kubeadm", "1.35.6")])
)
play(prefetch, wanted=wanted("1.35.5"))
play(prefetch, wanted=wanted("1.35.6"))
assert sorted(os.listdir(prefetched.FOLDER)) == sorted(os.path.basename(prefetched.place(artifact)) for artifact in later[2:])
served.files["kubelet-1.35.5-1"] = b"somebody else's"
refused("DigestMismatch", ("kubelet 1.35.5",), lambda: play(prefetch, wanted=wanted("1.35.5")))
refused("ArtifactNotFound", ("kubelet 1.36.0",), lambda: play(prefetch, wanted=wanted("1.36.0")))

# kubeadm's word on its pause image: by the one that lies ready, else by the one that is installed.
SCRIPT = b"#!/bin/sh\n[ \"$*\" = 'config images list --kubernetes-version=v1.36.0 --image-repository=registry.example' ] || exit 1\n"
SAYS = b"echo registry.example/kube-apiserver:v1.36.0\necho registry.example/pause:3.10.2\n"


def kubeadm(content: bytes) -> dict:
    artifact = entry("kubeadm", "1.36.0")
    served.files[artifact["path"]] = content
    artifact["sha256"] = hashlib.sha256(content).hexdigest()
    served.index = json.dumps({"formatVersion": 1, "artifacts": [artifact]}).encode()
    return {"name": "kubeadm", "version": "1.36.0", "directory": str(BIN), "strip": 0, "only": None}


program = kubeadm(SCRIPT + SAYS)
pause = lambda: play(kubeadm_pause, program=program, repository="registry.example")["versions"]  # noqa: E731
refused("NotPrefetched", ("kubeadm 1.36.0",), pause)
play(prefetch, wanted=[program])
assert pause() == {"registry.example/pause": "3.10.2"}
play(artifacts, wanted=[program])
assert lies_ready() == ["kubelet"] and pause() == {"registry.example/pause": "3.10.2"}
program = kubeadm(SCRIPT)
play(prefetch, wanted=[program])
refused("KubeadmFailed", ("kubeadm 1.36.0 names no image registry.example/pause",), pause)

# Images that lie ready are the cluster's once a run takes them.
IMAGE = entry("registry.example/pause", "3.10.2", kind="image")
served.say(IMAGE)
imported = []


def attempt(*argv: str, **_options: object) -> Output:
    if "import" in argv:
        imported.append(f"{IMAGE['name']}:{IMAGE['version']}")
    return Output(0, "\n".join(imported), "")


images.attempt = attempt
take = lambda ahead, check=False: play(
    images, check, wanted=[{"name": IMAGE["name"], "version": None}], also_all_others=False, ahead=ahead
)  # noqa: E731
record = lambda: membership.read(membership.ARTIFACTS)["image:registry.example/pause:3.10.2"]  # noqa: E731
result = take(True)
assert result["changed"] and "clusterwright" not in result, result
assert record() == {"sha256": digest(IMAGE["name"], "3.10.2"), "other": True}
assert not take(True, check=True)["changed"] and not take(False, check=True)["changed"]
assert record()["other"], "a probe changes nothing"
result = take(False)
assert not result["changed"] and result["clusterwright"]["components"][0]["version"] == "3.10.2"
assert record() == {"sha256": digest(IMAGE["name"], "3.10.2")} and len(imported) == 1
assert not take(True)["changed"] and "other" not in record()
