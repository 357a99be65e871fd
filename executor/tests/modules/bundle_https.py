"""The bundle from a real HTTPS server with a private CA and logins, and what is refused of it."""

import base64
import hashlib
import http.server
import json
import pathlib
import sys
import threading

from tls_world import authority, certificate, server_context

from ansible_collections.clusterwright.cluster.plugins.module_utils import bundle as bundles, downloads, proxies
from ansible_collections.clusterwright.cluster.plugins.module_utils.bundle import Bundle
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure
from ansible_collections.clusterwright.cluster.plugins.module_utils.findings import artifacts as finding_of
from ansible_collections.clusterwright.cluster.plugins.module_utils.machine import architecture

place = pathlib.Path(sys.argv[1])
bundles.CACHE = str(place / "cache")
downloads.ATTEMPTS = 1
CANARY = "canary-Zk3-secret"
CONTENT = b"a program"
INDEX = json.dumps(
    {
        "formatVersion": 1,
        "artifacts": [
            {
                "name": "tool", "version": "1.0", "kind": "file", "os": "linux", "arch": architecture(), "path": "tool",
                "sha256": hashlib.sha256(CONTENT).hexdigest(),
            }
        ],
    }
).encode()
DIGEST = hashlib.sha256(INDEX).hexdigest()


class Server:
    """Serves the bundle to who says the right words; keeps what it was told."""

    def __init__(self, name: str = "", wanted: str = "", redirect: str = "") -> None:
        self.told: list = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # pylint: disable=invalid-name
                said = self.headers.get("Authorization") or ""
                server.told.append(said)
                if wanted and said != wanted:
                    self.send_error(401)
                elif redirect:
                    self.send_response(302)
                    self.send_header("Location", redirect + self.path)
                    self.end_headers()
                else:
                    content = INDEX if self.path.endswith("/index.json") else CONTENT
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if name:
            httpd.socket = server_context(name).wrap_socket(httpd.socket, server_side=True)
        self.url = f"{'https' if name else 'http'}://127.0.0.1:{httpd.server_address[1]}"
        threading.Thread(target=httpd.serve_forever, daemon=True).start()


def fetched(server: Server, **options: object) -> bytes:
    bundle = Bundle({"url": server.url + "/b/", "kube_version": "1.35.4", **options})
    return bundle.fetch_all(bundle.resolve([{"name": "tool"}]), lambda _artifact, path: pathlib.Path(path).read_bytes())[0]


def refused(reason: str, part: str, server: Server, **options: str) -> None:
    try:
        fetched(server, **options)
    except StepFailure as failure:
        assert failure.reason == reason and part in failure.message, (failure.reason, failure.message)
        assert CANARY not in failure.message, failure.message
        return
    raise AssertionError(f"{options} was let through")


certificate("one")
certificate("two")
CA = authority("one")

# Whom to trust.
plain = Server("one")
assert fetched(plain, ca=CA) == CONTENT
refused("ArtifactSourceUnavailable", "spec.artifacts.caRef", plain)
refused("ArtifactSourceUnavailable", "spec.artifacts.caRef", plain, ca=authority("two"))
refused("InvalidCA", "spec.artifacts.caRef", plain, ca="no certificate")

# Who we are.
basic = Server("one", "Basic " + base64.b64encode(f"fleet:{CANARY}".encode()).decode())
assert fetched(basic, ca=CA, username="fleet", password=CANARY) == CONTENT
refused("ArtifactSourceUnavailable", "spec.artifacts.credentialsRef", basic, ca=CA)
refused("ArtifactSourceUnavailable", "spec.artifacts.credentialsRef", basic, ca=CA, username="fleet", password="wrong")
bearer = Server("one", f"Bearer {CANARY}")
assert fetched(bearer, ca=CA, token=CANARY) == CONTENT
refused("ArtifactSourceUnavailable", "spec.artifacts.credentialsRef", bearer, ca=CA, token="wrong")
unencrypted = Server()
refused("InvalidVariables", "HTTPS only", unencrypted, token=CANARY)
assert not unencrypted.told, "the login went over an open wire"

# A login is for one server, and HTTPS is not left.
elsewhere = Server("one")
assert fetched(Server("one", f"Bearer {CANARY}", elsewhere.url), ca=CA, token=CANARY) == CONTENT
assert elsewhere.told == ["", ""], elsewhere.told
refused("ArtifactSourceUnavailable", "away from HTTPS", Server("one", redirect=Server().url), ca=CA)

# Through a proxy, which is asked for the whole URL; what noProxy names is reached without it.
proxy = Server()
assert fetched(proxy, url="http://bundle.test/b", proxy={"httpProxy": proxy.url, "noProxy": ["10.0.0.0/8", ".svc"]}) == CONTENT
assert proxy.told, "the proxy was not asked"
nobody = {"httpProxy": "http://127.0.0.1:1", "httpsProxy": "http://127.0.0.1:1"}
refused("ArtifactSourceUnavailable", "127.0.0.1", unencrypted, proxy=nobody)
assert fetched(unencrypted, proxy={**nobody, "noProxy": ["127.0.0.0/8"]}) == CONTENT
assert fetched(plain, ca=CA, proxy={**nobody, "noProxy": ["127.0.0.1"]}) == CONTENT
for entry, host in (("*", "a"), ("a.test", "A.test"), ("a.test", "b.a.test"), (".a.test", "b.a.test"), ("*.a.test", "b.a.test"),
                    ("10.0.0.0/8", "10.1.2.3"), ("10.1.2.3", "10.1.2.3"), ("[::1]", "::1")):
    assert proxies.covers(entry, host), (entry, host)
for entry, host in (("a.test", "ba.test"), (".svc", "svc.test"), ("10.0.0.0/8", "11.0.0.1"), ("10.0.0.0/8", "a.test")):
    assert not proxies.covers(entry, host), (entry, host)

# What is promised of the index holds, over plain HTTP too.
assert fetched(unencrypted, index_sha256=DIGEST) == CONTENT
refused("DigestMismatch", "spec.artifacts.indexSHA256", unencrypted, index_sha256="0" * 64)


def warned(url: str, **options: str) -> bool:
    found = finding_of({"bundle": {"url": url, "kube_version": "1.35.4", **options}, "artifacts": [{"name": "tool"}]})
    assert all(finding["severity"] == "warning" for finding in found), found
    return [finding["name"] for finding in found] == ["artifacts-unverified"]


assert warned(unencrypted.url)
assert not warned(unencrypted.url, index_sha256=DIGEST) and not warned(plain.url, ca=CA)
