"""Without a bundle machines take programs and images from upstream's servers: each by a digest, through the machine's proxy, and nothing
unlocked where there is a lock."""

import json
import os
import pathlib
import tarfile

from bundle_world import Served, digest as digest_of, entry, refused
from upstream_world import ARCH, LAYER, PLACE, Proxy, Upstream, sha256

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle_cache, components
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.findings import artifacts as findings_of

TOOL, PAUSE = {"name": "tool"}, {"name": "registry.test/pause"}
BOTH = [TOOL, PAUSE]
bundle_cache.FOLDER = str(PLACE / "run" / "index")


def resolved(upstream: Upstream, wanted: list, **options: object) -> list:
    return Bundle(upstream.options(**options)).resolve(wanted)


def fetched(upstream: Upstream, one: dict, **options: object) -> bytes:
    bundle = Bundle(upstream.options(**options))
    return bundle.fetch_all(bundle.resolve([one]), lambda _artifact, path: pathlib.Path(path).read_bytes())[0]


def frozen(name: str, version: str, digest: str) -> dict:
    return {name: {"version": version, "digests": {ARCH: digest}}}


def is_clean() -> bool:
    return not (PLACE / "cache").exists() or not os.listdir(PLACE / "cache")


# A program by the checksum beside it; of another version, too.
up = Upstream()
up.release("tool", "1.1", b"a newer one")
assert fetched(up, TOOL) == b"a program"
assert fetched(up, {"name": "tool", "version": "v1.1"}) == b"a newer one"
assert resolved(up, [TOOL])[0]["sha256"] == sha256(b"a program")

# An image by the digest that the registry's tag leads to on this architecture, with the registry's own bytes.
image = up.image(LAYER)
(found,) = resolved(up, [PAUSE])
assert (found["version"], f"sha256:{found['sha256']}") == ("v3", image), found
archive = PLACE / "image.tar"
archive.write_bytes(fetched(up, PAUSE))
with tarfile.open(archive) as tar:
    content = {member.name: tar.extractfile(member).read() for member in tar}
(described,) = json.loads(content["index.json"])["manifests"]
assert described["digest"] == image and described["annotations"]["io.containerd.image.name"] == "registry.test/pause:v3", described
assert content[f"blobs/sha256/{found['sha256']}"] == up.manifests[image]
assert content[f"blobs/sha256/{sha256(LAYER)}"] == LAYER and len(content) == 5, sorted(content)
for name, blob in content.items():
    assert not name.startswith("blobs/") or sha256(blob) == name.rpartition("/")[2], name
assert up.told and not any(up.told), "the token is for the registry alone"

# A registry that leads elsewhere, to where a token is asked for.
front, behind = Upstream(), Upstream()
front.leads_to = behind.port
assert resolved(front, [PAUSE])[0]["sha256"] == found["sha256"] and fetched(front, PAUSE)
assert behind.asked.count("/token") == 2 and "/token" not in front.asked, behind.asked

# Nothing of another file is used, wherever it changes, and nothing of it is left.
up.files[f"/tool/v1.0/tool.{ARCH}"] = b"another program"
refused("DigestMismatch", ("tool 1.0", sha256(b"a program"), sha256(b"another program")), lambda: fetched(up, TOOL))
up.blobs[f"sha256:{sha256(LAYER)}"] = b"b layer"
refused("DigestMismatch", (sha256(b"b layer"), "nothing of the image was used"), lambda: fetched(up, PAUSE))
up.blobs[f"sha256:{sha256(LAYER)}"] = LAYER + b" and more"
refused("ArtifactSourceUnavailable", ("more than 7 bytes",), lambda: fetched(up, PAUSE))
up.manifests[image] = up.manifests[image].replace(b'"schemaVersion": 2', b'"schemaVersion": 1')
refused("DigestMismatch", (image, "nothing of the image was used"), lambda: fetched(up, PAUSE))
assert is_clean()
up = Upstream()
up.files["/tool/v1.0/SHA256SUMS"] = f"{'0' * 64}  tool.other\n".encode()
refused("ArtifactIndexInvalid", ("has no SHA-256 of tool",), lambda: resolved(up, [TOOL]))
up.push("v4", up.image(LAYER, "other"))
refused("ArtifactInvalid", ("is for linux/other alone",), lambda: fetched(up, {**PAUSE, "version": "4"}))
up.push("v5", up.image(LAYER, "other"), "third")
refused("ArtifactNotFound", (f"is not there for linux/{ARCH}, but for linux/other, linux/third",), lambda: resolved(up, [{**PAUSE, "version": "v5"}]))

# What upstream does not have is missing, all of it at once; so is all of a minor that the catalogue does not know.
up = Upstream()
gone = ("upstream has no tool 9.9.9, registry.test/pause 9", "a version that is released")
refused("ArtifactNotFound", gone, lambda: resolved(up, [{"name": "tool", "version": "9.9.9"}, {**PAUSE, "version": "9"}]))
refused("ArtifactNotFound", ("has no other 1.0",), lambda: resolved(up, [{"name": "other", "version": "1.0"}]))
refused("ArtifactNotFound", ("tool (the catalogue has versions for Kubernetes 1.35 alone)",), lambda: resolved(up, [TOOL], kube_version="1.36.0"))
wanted = {"tool": {"version": "9.9.9", "digests": {}, "field": "spec.versions.tool"}}
refused("ArtifactNotFound", ("tool 9.9.9 (spec.versions.tool)",), lambda: resolved(up, BOTH, components=wanted))

# What the cluster has is looked for nowhere, and it is that very file, whatever upstream says of it now.
known = {**frozen("tool", "1.0", sha256(b"a program")), **frozen("registry.test/pause", "v3", image.removeprefix("sha256:"))}
up.asked.clear()
assert [one["sha256"] for one in resolved(up, BOTH, components=known)] == [one["digests"][ARCH] for one in known.values()]
assert up.asked == []
up.release("tool", "1.0", b"released again")
up.push("v3", up.image(b"pushed again"))
refused("DigestMismatch", ("tool 1.0", "has another file than the one that the cluster has"), lambda: fetched(up, TOOL, components=known))
assert sha256(LAYER).encode() in fetched(up, PAUSE, components=known), "by its digest the former image is there"

# All steps of a run take what its first one found.
os.environ["CLUSTERWRIGHT_FENCE"] = "1-7"
up = Upstream()
first = resolved(up, BOTH)
up.push("v3", up.image(b"pushed again"))
up.release("tool", "1.0", b"released again")
up.asked.clear()
assert resolved(up, BOTH) == first and up.asked == []
os.environ["CLUSTERWRIGHT_FENCE"] = "1-8"
assert [one["sha256"] for one in resolved(up, BOTH)] != [one["sha256"] for one in first]
del os.environ["CLUSTERWRIGHT_FENCE"]

# With a lock nothing else is taken, and nobody is asked.
up = Upstream()
URL, REFERENCE = f"https://localhost:{up.port}/tool/v1.0/tool.{ARCH}", f"localhost:{up.port}/site/pause:v3 linux/{ARCH}"
lock = {"files": {URL: sha256(b"a program")}, "images": {REFERENCE: image}}
assert [one["sha256"] for one in resolved(up, BOTH, lock=lock)] == [sha256(b"a program"), image.removeprefix("sha256:")] and up.asked == []
assert fetched(up, TOOL, lock=lock) == b"a program" and fetched(up, PAUSE, lock=lock)
lacks = (f"no digest of {URL} (tool 1.0)", "wright bundle lock", f"linux/{ARCH}")
refused("ArtifactNotFound", lacks, lambda: resolved(up, BOTH, lock={**lock, "files": {}}))
refused("ArtifactNotFound", (REFERENCE,), lambda: resolved(up, [PAUSE], lock={"files": {}}))
refused("DigestMismatch", ("0" * 64,), lambda: fetched(up, TOOL, lock={**lock, "files": {URL: "0" * 64}}))
refused("ArtifactSourceUnavailable", ("HTTP 404", "0" * 64), lambda: fetched(up, PAUSE, lock={**lock, "images": {REFERENCE: f"sha256:{'0' * 64}"}}))
refused("ComponentChanged", ("0" * 64, "frozen for this cluster"), lambda: resolved(up, [TOOL], lock=lock, components=frozen("tool", "1.0", "0" * 64)))

# Everything passes the machine's proxy, the token and what it leads on to included, but for what is reached without.
proxy = Proxy()
assert fetched(up, TOOL, proxy={"httpsProxy": proxy.url}) == b"a program" and set(proxy.asked) == {"localhost"}
assert fetched(up, PAUSE, proxy={"httpsProxy": proxy.url}) and set(proxy.asked) == {"localhost", "127.0.0.1"}, proxy.asked
proxy.asked.clear()
assert fetched(up, PAUSE, proxy={"httpsProxy": proxy.url, "noProxy": ["localhost"]}) and set(proxy.asked) == {"127.0.0.1"}, proxy.asked
nobody = {"httpsProxy": "http://127.0.0.1:1"}
refused("ArtifactSourceUnavailable", ("does not answer from this machine",), lambda: resolved(up, [TOOL], proxy=nobody))
refused("ArtifactSourceUnavailable", ("spec.artifacts.caRef",), lambda: resolved(up, [TOOL], ca=""))


def found_of(**options: object) -> list:
    return [one["name"] for one in findings_of({"bundle": up.options(**options), "artifacts": BOTH})]


# Preflight says what is believed, and asks the servers even of what is known.
assert found_of() == ["artifacts-unlocked"] and found_of(lock=lock) == []
up.asked.clear()
assert found_of(components=known) == ["artifacts-unlocked"] and up.asked == ["/tool/v1.0/SHA256SUMS"], up.asked
assert found_of(components=known, proxy=nobody) == ["artifacts-unlocked", "artifact-source"]
assert found_of(lock={**lock, "files": {}}) == ["artifacts-missing"]

# An image that came from its registry is the same one in a bundle that was made of it, and not in another.
archived = {**entry("registry.test/pause", "v3", kind="image"), "manifest": image}
(artifact,) = Bundle(Served(archived).options(components=known)).resolve([PAUSE])
assert artifact["sha256"] == digest_of("registry.test/pause", "v3") and components.identity(artifact) == image.removeprefix("sha256:")
assert components.report([artifact])["components"][0]["sha256"] == image.removeprefix("sha256:")
other = {**archived, "manifest": f"sha256:{'0' * 64}"}
refused("ComponentChanged", (digest_of("registry.test/pause", "v3"),), lambda: Bundle(Served(other).options(components=known)).resolve([PAUSE]))

# A wrong variable says what is wrong with it.
catalogue = up.catalogue()
for said, wrong in (
    ("an object with components, kubernetes, versions", {"kubernetes": {}}),
    ("tool must be kind file or archive", {**catalogue, "components": {"tool": {"kind": "file", "url": "https://x"}}}),
    ("tool.checksums must be an https URL", {**catalogue, "components": {"tool": {"kind": "file", "url": "https://x", "checksums": "http://x"}}}),
    ("is no image with a host and a tag", {**catalogue, "components": {"tool": {"kind": "image", "from": "pause"}}}),
):
    refused("InvalidVariables", (said,), lambda value=wrong: resolved(up, [TOOL], catalogue=value))
refused("InvalidVariables", ("both url and catalogue",), lambda: resolved(up, [TOOL], url="https://b"))
