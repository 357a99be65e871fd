"""Which version of a component is meant, that a frozen one is the very same file, and that what is malformed names its place."""

import json

from bundle_world import ARCH, Served, digest, entry, refused

from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.findings import artifacts as findings_of

PAUSE = "registry.k8s.io/pause"
TABLE = {"1.34": {"etcd": "3.5.9"}, "1.35": {"etcd": "3.6.9", PAUSE: "3.10"}}
OLD, TABLED, NEW = entry("etcd", "3.5.9"), entry("etcd", "3.6.9"), entry("etcd", "3.6.16")
PAUSES = entry(PAUSE, "v3.10", kind="image"), entry(PAUSE, "v3.11", kind="image")


def frozen(name: str, version: str, **digests: str) -> dict:
    return {name: {"version": version, "digests": digests}}


def got(served: Served, asked: str = "", name: str = "etcd", **options: object) -> str:
    return Bundle(served.options(**options)).resolve([{"name": name, "version": asked}])[0]["version"]


# What goes before what.
plain, tabled = Served(OLD, TABLED, NEW), Served(OLD, TABLED, NEW, *PAUSES, components=TABLE)
of_old = frozen("etcd", "3.5.9", **{ARCH: digest("etcd", "3.5.9")})
assert got(plain) == "3.6.16", "without a table, the newest"
assert got(tabled) == "3.6.9", "with a table, its version for this minor, whatever is newer"
assert got(tabled, kube_version="v1.34.1") == "3.5.9"
assert got(tabled, kube_version="1.36.0") == "3.6.16", "no table for this minor"
assert got(tabled, name=PAUSE) == "v3.10", "with or without v"
assert got(tabled, components=of_old) == "3.5.9", "a frozen one, whatever the table says"
assert got(tabled, "3.6.16", components=of_old) == "3.6.16", "what a person asks for goes before what is frozen"
assert got(tabled, components=frozen(PAUSE, "3.11")) == "3.6.9", "what is not frozen is resolved"

# A newer bundle changes nothing for a cluster that stands.
grown = Served(OLD, TABLED, NEW, entry("etcd", "3.7.0"), components={"1.35": {"etcd": "3.7.0"}})
assert got(grown) == "3.7.0" and got(grown, components=of_old) == "3.5.9"

# The very same file.
rebuilt = Served(entry("etcd", "3.5.9", build=2), TABLED)
both = (digest("etcd", "3.5.9"), digest("etcd", "3.5.9", build=2))
told = ("etcd 3.5.9", f"{rebuilt.url}/index.json", "put the former file back", *both)
refused("ComponentChanged", told, lambda: got(rebuilt, components=of_old))
refused("ComponentChanged", told, lambda: got(rebuilt, "3.5.9", components=of_old))
elsewhere = frozen("etcd", "3.5.9", other=digest("etcd", "3.5.9"))
assert got(rebuilt, components=elsewhere) == "3.5.9", "nothing is known of this architecture"
assert got(rebuilt, components=frozen("etcd", "3.5.9", **{ARCH: both[1].upper()})) == "3.5.9"
beside = Served(entry("etcd", "3.5.9", build=2), OLD)
assert Bundle(beside.options(components=of_old)).resolve([{"name": "etcd"}]) == [OLD], "the former file is there as well"

# What is missing is named with who wants it; another version does not stand in.
gone = Served(TABLED, components={"1.35": {PAUSE: "3.12"}})
parts = ("no etcd 3.5.9 (frozen for this cluster)", "for linux/" + ARCH, gone.url, "the file that it was")
refused("ArtifactNotFound", parts, lambda: got(gone, components=of_old))
refused("ArtifactNotFound", (f"{PAUSE} 3.12 (in its table for Kubernetes 1.35)",), lambda: got(gone, name=PAUSE))




def named(version: str, component: str = "etcd", field: str = "spec.versions.etcd", **digests: str) -> dict:
    """What the cluster's spec names."""
    return {component: {"version": version, "digests": digests, "field": field}}


# What the spec names goes before the table, and must be the very same file once that is known.
assert got(tabled, components=named("3.6.16")) == "3.6.16" and got(tabled, name=PAUSE, components=named("3.6.16")) == "v3.10"
refused("ComponentChanged", (both[0],), lambda: got(rebuilt, components=named("3.5.9", **{ARCH: both[0]})))
# What of it the bundle lacks is told before anything else is taken from there, with the field and what there is.
lacks = ("spec.versions.etcd is 3.6.99", f"{tabled.url}/index.json has etcd 3.5.9, 3.6.9, 3.6.16:", "nothing was changed")
for other in ("etcd", PAUSE):
    refused("ArtifactNotFound", lacks, lambda asked=other: got(tabled, name=asked, components=named("3.6.99")))
two = {**named("3.6.99"), **named("9.9.9", "runc", "spec.versions.runc")}
refused("ArtifactNotFound", (*lacks[:1], "spec.versions.runc is 9.9.9", "has runc of no version"), lambda: got(tabled, components=two))
# On another architecture than this machine's it is enough, where nobody wants it here.
elsewhere_only = Served(TABLED, *PAUSES, entry("etcd", "3.7.0", arch="other"), components=TABLE)
assert got(elsewhere_only, name=PAUSE, components=named("3.7.0")) == "v3.10"
refused("ArtifactNotFound", ("etcd 3.7.0 (spec.versions.etcd)",), lambda: got(elsewhere_only, components=named("3.7.0")))


def finding(served: Served) -> str:
    found = findings_of({"bundle": served.options(components=of_old), "artifacts": [{"name": "etcd", "version": ""}]})
    return ", ".join(one["name"] for one in found if one["severity"] == "error")


assert (finding(rebuilt), finding(gone), finding(tabled)) == ("component-changed", "artifacts-missing", "")

# A wrong index names its place.
for place, fields in (
    ('components is ["1.35"]', {"components": ["1.35"]}),
    ('a key of components is "1.35.4"', {"components": {"1.35.4": {}}}),
    ('components["1.35"] is "3.6.9"', {"components": {"1.35": "3.6.9"}}),
    ('components["1.35"]["etcd"] is 3.6,', {"components": {"1.34": {}, "1.35": {"etcd": 3.6}}}),
    ('components["1.35"]["etcd"] is ""', {"components": {"1.35": {"etcd": ""}}}),
    ("artifacts[1].path is null", {"artifacts": [OLD, {**NEW, "path": None}]}),
    ('artifacts[0].sha256 is "12"', {"artifacts": [{**OLD, "sha256": "12"}]}),
    ("artifacts[0] is 1", {"artifacts": [1]}),
):
    wrong = Served()
    wrong.index = json.dumps({"formatVersion": 1, "artifacts": [OLD], **fields}).encode()
    refused("ArtifactIndexInvalid", (place, "must be", f"{wrong.url}/index.json"), lambda served=wrong: got(served))

# A format that is not known is refused: a newer one with what to do, and one without a version, which no bundle ever had.
for version, said in (
    (2, ("formatVersion is 2, and the newest that is read here is 1", "update Clusterwright")),
    (None, ("formatVersion is null, and must be 1",)),
    ("1", ('formatVersion is "1", and must be 1',)),
    (True, ("formatVersion is true, and must be 1",)),
):
    wrong = Served()
    wrong.index = json.dumps({"formatVersion": version, "artifacts": [OLD]}).encode()
    refused("ArtifactIndexInvalid", (*said, f"{wrong.url}/index.json"), lambda served=wrong: got(served))

# What a later version adds beside the fields that are known is passed over.
later = Served(OLD, repositories=[{"distribution": "debian12"}])
later.index = json.dumps({"formatVersion": 1, "repositories": [], "artifacts": [{**OLD, "source": "https://x", "kind": "packages"}]}).encode()
assert Bundle(later.options()).find("etcd", "") is not None

# And so does a wrong variable.
for place, components in (
    ("components is [", []),
    ("components['etcd'] is '3.6.9'", {"etcd": "3.6.9"}),
    ("components['etcd'] is {", {"etcd": {"version": "3.6.9", "digest": "12"}}),
    ("components['etcd'].version is 3.6", {"etcd": {"version": 3.6}}),
    ("components['etcd'].field is 1", {"etcd": {"version": "3.6.9", "field": 1}}),
    ("components['etcd'].digests is '12'", {"etcd": {"version": "3.6.9", "digests": "12"}}),
    ("components['etcd'].digests['amd64'] is '12'", frozen("etcd", "3.6.9", amd64="12")),
):
    refused("InvalidVariables", (place, "must be"), lambda value=components: got(plain, components=value))
refused("InvalidVariables", ("kube_version is 'latest'",), lambda: got(plain, kube_version="latest"))
refused("InvalidVariables", ("unknown fields index", "index_sha256"), lambda: got(plain, index="x"))
