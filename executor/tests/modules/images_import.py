"""An import that fails leaves no lock behind in containerd; one that never began leaves containerd alone."""

from ansible_collections.clusterwright.cluster.plugins.module_utils.command import Output
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.modules import images

PAUSE = {"name": "registry.k8s.io/pause", "version": "3.10.1", "sha256": "0" * 64, "kind": "image"}


class Call:
    params = {"bundle": {"url": "http://bundle"}, "wanted": [{"name": PAUSE["name"]}], "also_all_others": False, "ahead": False}
    check_mode = False


class Bundle:
    """A bundle of one image. `failure` is what its download ends with."""

    failure = None

    def __init__(self, _options):
        self.artifacts = [PAUSE]

    def resolve(self, _wanted):
        return [PAUSE]

    def fetch_all(self, artifacts, then):
        if self.failure:
            raise self.failure
        for artifact in artifacts:
            then(artifact, "/archive.tar")


def played(imports: str | None = None, download: StepFailure | None = None) -> tuple:
    """What was saved, what was done beside ctr, and the failure; `imports`: what ctr says when it fails."""
    saved, done = {}, []

    def attempt(*argv, **_options):
        if argv[0] != "ctr":
            done.append(argv)
        failed = imports and "import" in argv
        return Output(1, "", imports) if failed else Output(0, "", "")

    images.Bundle, Bundle.failure = Bundle, download
    images.attempt = attempt
    images.membership.read = lambda _key: {}
    images.membership.save = lambda _key, records: saved.update(records)
    try:
        images.work(Call)
    except StepFailure as failure:
        return saved, done, f"{failure.reason}: {failure.message}"
    return saved, done, None


assert played() == ({"image:registry.k8s.io/pause:3.10.1": {"sha256": "0" * 64}}, [], None)
restarted = [("systemctl", "restart", "containerd.service")]
full = 'time="2026-01-01T10:00:00Z" level=warning msg="DEPRECATION: cgroup v1"\nctr: failed to ingest: no space left on device'
assert played(imports=full) == (
    {},
    restarted,
    "ImageImportFailed: ctr images import: ctr: failed to ingest: no space left on device",
)
assert played(download=StepFailure("ArtifactSourceUnavailable", "no answer")) == ({}, [], "ArtifactSourceUnavailable: no answer")
