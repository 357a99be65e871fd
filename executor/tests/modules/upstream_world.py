"""Upstream's servers on this machine, over TLS: files with their checksums, a registry that wants a token, where its blobs are, and a
proxy that leads to them."""

import contextlib
import hashlib
import http.server
import json
import pathlib
import select
import socket
import sys
import threading
import urllib.parse

from tls_world import authority, certificate, server_context

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle as bundles, downloads
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import architecture

PLACE = pathlib.Path(sys.argv[1])
ARCH = architecture()
bundles.CACHE = str(PLACE / "cache")
downloads.ATTEMPTS = 1
certificate("one")
TOKEN = "token-of-nobody"
LAYER = b"a layer"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Upstream:
    """`files` by path; `tags` of the registry's image: digest by tag; `blobs` and `manifests` by digest. What was asked is in `asked`, and
    what the blobs' server was told of us in `told`."""

    def __init__(self) -> None:
        self.files: dict = {}
        self.tags: dict = {}
        self.manifests: dict = {}
        self.blobs: dict = {}
        self.asked: list = []
        self.told: list = []
        # Where the registry leads to, with whatever it is asked for.
        self.leads_to = 0
        self.port = self._serve(self._answer)
        self.blob_port = self._serve(self._answer_blob)
        self.release("tool", "1.0")
        self.push("v3", self.image(LAYER))

    def _serve(self, answer) -> int:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # pylint: disable=invalid-name
                code, content, headers = answer(self)
                self.send_response(code)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        httpd.socket = server_context("one").wrap_socket(httpd.socket, server_side=True)
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        return httpd.server_address[1]

    def _answer(self, request) -> tuple:
        url = urllib.parse.urlsplit(request.path)
        self.asked.append(url.path)
        if url.path == "/token":
            wanted = {"service": ["here"], "scope": ["repository:site/pause:pull"]}
            return (200, json.dumps({"token": TOKEN}).encode(), {}) if urllib.parse.parse_qs(url.query) == wanted else (400, b"", {})
        if url.path.startswith("/v2/"):
            return self._answer_registry(request, url.path)
        content = self.files.get(url.path)
        return (404, b"", {}) if content is None else (200, content, {})

    def _answer_registry(self, request, path: str) -> tuple:
        if self.leads_to:
            return 307, b"", {"Location": f"https://127.0.0.1:{self.leads_to}{path}"}
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            realm = f'Bearer realm="https://localhost:{self.port}/token",service="here",scope="repository:site/pause:pull"'
            return 401, b"", {"WWW-Authenticate": realm}
        _v2, repository, kind, what = path[1:].split("/")[0], *path[4:].rsplit("/", 2)
        if repository != "site/pause":
            return 404, b"", {}
        if kind == "blobs":
            # As registries do that keep blobs in a bucket.
            return 307, b"", {"Location": f"https://127.0.0.1:{self.blob_port}/{what}"}
        manifest = self.manifests.get(self.tags.get(what, what))
        return (404, b"", {}) if manifest is None else (200, manifest, {"Content-Type": json.loads(manifest)["mediaType"]})

    def _answer_blob(self, request) -> tuple:
        self.told.append(request.headers.get("Authorization"))
        content = self.blobs.get(request.path[1:])
        return (404, b"", {}) if content is None else (200, content, {})

    def release(self, name: str, version: str, content: bytes = b"a program") -> str:
        """A file with its line in a checksum file, among others; its SHA-256."""
        folder, digest = f"/{name}/v{version}", sha256(content)
        self.files[f"{folder}/{name}.{ARCH}"] = content
        self.files[f"{folder}/SHA256SUMS"] = f"{'0' * 64}  {name}.other\n{digest} *{name}.{ARCH}\n".encode()
        return digest

    def blob(self, content: bytes) -> dict:
        digest = f"sha256:{sha256(content)}"
        self.blobs[digest] = content
        return {"digest": digest, "size": len(content)}

    def image(self, layer: bytes, arch: str = ARCH) -> str:
        """The digest of the manifest of an image with that layer, twice."""
        config = self.blob(json.dumps({"os": "linux", "architecture": arch}).encode())
        layers = [self.blob(layer)] * 2
        return self._manifest("application/vnd.oci.image.manifest.v1+json", {"config": config, "layers": layers})

    def push(self, tag: str, digest: str, arch: str = ARCH) -> None:
        """The tag is that of a list with the image of an architecture, and another one's."""
        entries = [{"digest": f"sha256:{'1' * 64}", "platform": {"os": "linux", "architecture": "other"}}]
        entries.append({"digest": digest, "platform": {"os": "linux", "architecture": arch}})
        self.tags[tag] = self._manifest("application/vnd.oci.image.index.v1+json", {"manifests": entries})

    def _manifest(self, media_type: str, value: dict) -> str:
        content = json.dumps({"schemaVersion": 2, "mediaType": media_type, **value}).encode()
        digest = f"sha256:{sha256(content)}"
        self.manifests[digest] = content
        return digest

    def catalogue(self) -> dict:
        files, registry = f"https://localhost:{self.port}", f"localhost:{self.port}"
        url = f"{files}/tool/v{{version}}/"
        tool = {"kind": "file", "url": f"{url}tool.{{arch}}", "checksums": f"{url}SHA256SUMS"}
        pause = {"kind": "image", "from": f"{registry}/site/pause:v{{version}}"}
        versions = {"1.35": {"tool": "1.0", "registry.test/pause": "v3"}}
        return {"kubernetes": {}, "components": {"tool": tool, "registry.test/pause": pause}, "versions": versions}

    def options(self, **more: object) -> dict:
        """The variable artifacts_bundle."""
        return {"catalogue": self.catalogue(), "ca": authority("one"), "kube_version": "1.35.4", **more}


class Proxy:
    """Leads to servers by CONNECT; `asked` are the hosts that it was asked for. It takes a.test and b.test for this machine."""

    def __init__(self) -> None:
        self.asked: list = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _address = self._listener.accept()
            threading.Thread(target=self._lead, args=(client,), daemon=True).start()

    def _lead(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            method, target = head.split(b" ")[:2]
            assert method == b"CONNECT", head
            host, _colon, port = target.decode().rpartition(":")
            self.asked.append(host)
            with socket.create_connection(("127.0.0.1", int(port))) as server:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                sides = {client: server, server: client}
                while True:
                    for side in select.select(list(sides), [], [])[0]:
                        chunk = side.recv(65536)
                        if not chunk:
                            return
                        sides[side].sendall(chunk)
