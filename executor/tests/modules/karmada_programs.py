"""Programs of a Karmada control plane lie beside those of before, so that going back downloads nothing, and never by another digest."""

import os
import pathlib

from machine_world import enter, play

enter()

from bundle_world import Served, content_of, entry  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils import components, files, karmada, membership  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import karmada_programs  # noqa: E402

SCHEDULER, API_SERVER = "karmada-scheduler", "kube-apiserver"
VERSIONS = ("1.17.5", "1.18.0", "1.18.1", "1.18.2", "1.18.3")
served = Served(*(entry(SCHEDULER, version) for version in VERSIONS), entry(API_SERVER, "1.35.4"), entry("archived", "1.0.0", kind="archive"))


def path(name: str, version: str) -> str:
    return f"{karmada.PROGRAMS}/{version}/bin/{name}"


def bring(*wanted: tuple, check: bool = False) -> tuple:
    """(result, failure, which files the bundle was asked for)."""
    served.asked.clear()
    result, failure = play(
        karmada_programs, check, wanted=[{"name": name, "version": version} for name, version in wanted], bundle=served.options()
    )
    return result, failure, [name for name in served.asked if name != "index.json"]


def there(name: str) -> list:
    """The versions of the program that are here."""
    return sorted(str(found.parent.parent.name) for found in pathlib.Path(karmada.PROGRAMS).glob(f"*/bin/{name}"))


result, failure, asked = bring((SCHEDULER, "1.17.5"), (API_SERVER, "1.35.4"), check=True)
assert failure is None, failure.message
assert result["changed"] and asked == [] and not os.path.exists(membership.KARMADA), "a probe changes nothing"
result, failure, asked = bring((SCHEDULER, "1.17.5"), (API_SERVER, "1.35.4"))
assert failure is None and result["changed"] and sorted(asked) == ["karmada-scheduler-1.17.5-1", "kube-apiserver-1.35.4-1"], (failure, asked)
told = {(component["name"], component["version"]) for component in result["clusterwright"]["components"]}
assert told == {(SCHEDULER, "1.17.5"), (API_SERVER, "1.35.4")} and result["clusterwright"]["kind"] == "components"
placed = path(SCHEDULER, "1.17.5")
assert pathlib.Path(placed).read_bytes() == content_of(SCHEDULER, "1.17.5") and os.stat(placed).st_mode & 0o7777 == 0o755
result, failure, asked = bring((SCHEDULER, "1.17.5"), (API_SERVER, "1.35.4"))
assert failure is None and not result["changed"] and asked == []
assert not bring((SCHEDULER, "1.17.5"), check=True)[0]["changed"]

# The next versions: the two of before stay, also the one that a unit still starts.
for version in ("1.18.0", "1.18.1"):
    assert bring((SCHEDULER, version))[0]["changed"]
assert there(SCHEDULER) == ["1.17.5", "1.18.0", "1.18.1"]
files.write(karmada.unit_path("clusterwright-karmada-scheduler.service"), f"[Service]\nExecStart={path(SCHEDULER, '1.17.5')} --x\n")
assert bring((SCHEDULER, "1.18.2"))[0]["changed"] and there(SCHEDULER) == ["1.17.5", "1.18.0", "1.18.1", "1.18.2"]
os.unlink(karmada.unit_path("clusterwright-karmada-scheduler.service"))
assert bring((SCHEDULER, "1.18.2"))[2] == [] and there(SCHEDULER) == ["1.18.0", "1.18.1", "1.18.2"]
assert there(API_SERVER) == ["1.35.4"] and not os.path.exists(f"{karmada.PROGRAMS}/1.17.5"), "of other programs nothing goes"

# Going back needs no download, and what was changed by hand is brought anew.
result, failure, asked = bring((SCHEDULER, "1.18.1"))
assert failure is None and not result["changed"] and asked == []
files.write(path(SCHEDULER, "1.18.1"), "tampered", 0o755)
assert bring((SCHEDULER, "1.18.1"), check=True)[0]["changed"]
assert bring((SCHEDULER, "1.18.1"))[2] == ["karmada-scheduler-1.18.1-1"]
assert pathlib.Path(path(SCHEDULER, "1.18.1")).read_bytes() == content_of(SCHEDULER, "1.18.1")

# Another file than the one that its digest says; one that is not there; one that is no program.
served.files["karmada-scheduler-1.18.3-1"] = b"something else"
_result, failure, _asked = bring((SCHEDULER, "1.18.3"))
assert failure.reason == "DigestMismatch" and there(SCHEDULER) == ["1.18.0", "1.18.1", "1.18.2"], failure.message
_result, failure, _asked = bring((SCHEDULER, "9.9.9"))
assert failure.reason == "ArtifactNotFound" and "karmada-scheduler 9.9.9" in failure.message
_result, failure, _asked = bring(("archived", "1.0.0"))
assert failure.reason == "ArtifactInvalid" and "archived 1.0.0 is archive" in failure.message
for name, version in (("../x", "1.0.0"), (SCHEDULER, "../.."), (SCHEDULER, "v1.18.2"), ("", "1")):
    assert bring((name, version))[1].reason == "InvalidVariables", (name, version)
assert components.installed()["components"] == [], "they are no components of a cluster"
