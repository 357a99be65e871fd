"""A bundle that a script changes while it is served, and what was asked of it."""

import hashlib
import http.server
import json
import pathlib
import sys
import threading

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle as bundles, downloads
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import architecture

PLACE = pathlib.Path(sys.argv[1])
ARCH = architecture()
bundles.CACHE = str(PLACE / "cache")
downloads.ATTEMPTS = 1


def content_of(name: str, version: str, build: int = 1) -> bytes:
    return f"{name} {version}, build {build}".encode()


def digest(name: str, version: str, build: int = 1) -> str:
    return hashlib.sha256(content_of(name, version, build)).hexdigest()


def entry(name: str, version: str, build: int = 1, kind: str = "file", arch: str = ARCH) -> dict:
    path = f"{name.replace('/', '-')}-{version}-{build}"
    sha256 = digest(name, version, build)
    return {"name": name, "version": version, "kind": kind, "os": "linux", "arch": arch, "path": path, "sha256": sha256}


class Served:
    """A server of a bundle: `index` is what it says now, `asked` the paths that it was asked for."""

    def __init__(self, *artifacts: dict, **fields: object) -> None:
        self.asked: list = []
        self.files: dict = {}
        self.say(*artifacts, **fields)
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # pylint: disable=invalid-name
                name = self.path.rpartition("/")[2]
                served.asked.append(name)
                content = served.index if name == "index.json" else served.files.get(name)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None:
                pass

        httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{httpd.server_address[1]}"
        threading.Thread(target=httpd.serve_forever, daemon=True).start()

    def say(self, *artifacts: dict, **fields: object) -> None:
        """Another index from now on."""
        for artifact in artifacts:
            build = int(artifact["path"].rpartition("-")[2])
            self.files[artifact["path"]] = content_of(artifact["name"], artifact["version"], build)
        self.index = json.dumps({"formatVersion": 1, "artifacts": artifacts, **fields}).encode()

    def options(self, **more: object) -> dict:
        """The variable artifacts_bundle."""
        return {"url": self.url, "kube_version": "1.35.4", **more}


def refused(reason: str, parts: tuple, action) -> None:
    """The action ends with this reason, and its message has all parts."""
    try:
        action()
    except StepFailure as failure:
        missing = [part for part in parts if part not in failure.message]
        assert failure.reason == reason and not missing, (failure.reason, failure.message, missing)
        return
    raise AssertionError(f"{reason} was expected, and it went well")
