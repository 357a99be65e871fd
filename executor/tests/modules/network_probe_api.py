"""An API server with the one Node m, the authority that it and its clients have, and kubeconfigs for it."""

import collections
import contextlib
import http.server
import json
import pathlib
import ssl
import subprocess
import sys
import threading

from network_probe_program import node_of

PLACE = pathlib.Path(sys.argv[1])


def openssl(*arguments):
    subprocess.run(("openssl", *arguments), check=True, capture_output=True, cwd=PLACE)


def make_authority():
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=ca",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign", "-keyout", "ca.key", "-out", "ca.crt")
    for name in ("api", "first", "second"):
        make_certificate(name)


def make_certificate(name):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.csr")
    (PLACE / "ext").write_text("subjectAltName=IP:127.0.0.1\n", encoding="ascii")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", "ext", "-out", f"{name}.crt")


class Apiserver:
    """Serves the one Node m to clients of the cluster's authority, and applies patches to its conditions as the API does."""

    def __init__(self):
        self.node = node_of(None)
        # (method, who asks) of each request; statuses to refuse the next ones with, and bodies to give instead.
        self.requests = []
        self.refusals = collections.deque()
        self.bodies = collections.deque()
        # How much longer answers claim to be than they are.
        self.more = 0
        apiserver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body) + apiserver.more))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def serve(self, path, kind):
                subject = dict(item for entry in self.connection.getpeercert()["subject"] for item in entry)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                apiserver.requests.append((self.command, subject["commonName"]))
                if apiserver.refusals:
                    self.answer(apiserver.refusals.popleft(), b'{"kind": "Status", "message": "not\\u001b now"}')
                elif apiserver.bodies:
                    self.answer(200, apiserver.bodies.popleft())
                elif self.path != path or self.headers.get("Content-Type") != kind:
                    self.answer(400, b"{}")
                else:
                    apiserver.patch(json.loads(body) if body else {})
                    self.answer(200, json.dumps(apiserver.node).encode())

            def do_GET(self):  # pylint: disable=invalid-name
                self.serve("/api/v1/nodes/m", None)

            def do_PATCH(self):  # pylint: disable=invalid-name
                self.serve("/api/v1/nodes/m/status", "application/strategic-merge-patch+json")

            def log_message(self, *_):
                pass

        httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(PLACE / "api.crt", PLACE / "api.key")
        context.load_verify_locations(PLACE / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
        self.url = f"https://127.0.0.1:{httpd.server_address[1]}"
        threading.Thread(target=httpd.serve_forever, daemon=True).start()

    def patch(self, body):
        conditions = {entry["type"]: entry for entry in self.node["status"]["conditions"]}
        for entry in (body.get("status") or {}).get("conditions") or []:
            if entry.pop("$patch", "") == "delete":
                conditions.pop(entry["type"], None)
            else:
                conditions[entry["type"]] = {**conditions.get(entry["type"], {}), **entry}
        self.node["status"]["conditions"] = list(conditions.values())

    def shows(self):
        """(status, reason) of the conditions beside the kubelet's."""
        return {entry["type"]: (entry["status"], entry["reason"]) for entry in self.node["status"]["conditions"] if entry["type"] != "Ready"}

    def heard(self):
        """Methods of the requests since the last time."""
        methods = [method for method, _who in self.requests]
        self.requests.clear()
        return methods


def encoded(path):
    return subprocess.run(("base64", "-w0", path), check=True, capture_output=True, text=True).stdout


def kubeconfig(url, name="kubelet.conf", user=None):
    user = user or f"    client-certificate: {PLACE}/current.pem\n    client-key: {PLACE}/current.pem\n"
    (PLACE / name).write_text(
        f"apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {encoded(PLACE / 'ca.crt')}\n    server: {url}\n"
        f"  name: default-cluster\nkind: Config\nusers:\n- name: default-auth\n  user:\n{user}",
        encoding="ascii",
    )
    return str(PLACE / name)


def credentials_as_data():
    return f"    client-certificate-data: {encoded(PLACE / 'first.crt')}\n    client-key-data: {encoded(PLACE / 'first.key')}\n"


def rotate(name):
    """As the kubelet does: certificate and key in one file."""
    (PLACE / "current.pem").write_bytes((PLACE / f"{name}.crt").read_bytes() + (PLACE / f"{name}.key").read_bytes())
