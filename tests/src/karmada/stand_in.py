#!/usr/bin/env python3
"""Stands in for each of Karmada's programs on a machine, and is none of them: by its flags it listens at the ports, with the
certificates, and with its kubeconfig it renews the Lease of who leads. It serves APIs that have nothing, and admits all that it is asked
about. Nothing is scheduled or propagated by it; only the operator's probe of a plane is answered."""

import datetime
import http.server
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request

NAME = os.path.basename(sys.argv[0])
FLAGS = dict(argument.lstrip("-").split("=", 1) for argument in sys.argv[1:] if "=" in argument)
LEADERS = {"karmada-scheduler", "karmada-controller-manager", "karmada-descheduler"}


def answer(path, request):
    """What a server of this program says."""
    if request and "request" in request and path.startswith("/convert"):
        objects = [{**one, "apiVersion": request["request"]["desiredAPIVersion"]} for one in request["request"]["objects"]]
        response = {"uid": request["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        return {**request, "response": response}
    if request and "request" in request:
        return {**request, "response": {"uid": request["request"]["uid"], "allowed": True}}
    api = re.fullmatch(r"/apis/([^/]+)/([^/?]+)(/[^?]*)?(\?.*)?", path)
    if api is None:
        return None
    group_version = f"{api[1]}/{api[2]}"
    if api[3] is None:
        verbs = ["get", "list", "watch"]
        clusters = {"name": "clusters", "singularName": "cluster", "namespaced": False, "kind": "Cluster", "verbs": verbs}
        resources = [clusters] if api[1] == "cluster.karmada.io" else []
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
    return {"kind": "ClusterList", "apiVersion": group_version, "metadata": {"resourceVersion": "1"}, "items": []}


class Handler(http.server.BaseHTTPRequestHandler):
    """Any path: what `answer` says, or that all is well."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        self.respond(None)

    def do_POST(self):  # noqa: N802
        self.respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def respond(self, request):
        """One answer."""
        found = answer(self.path, request)
        missing = found is None and self.path.startswith("/openapi")
        body = b"ok" if found is None else json.dumps(found).encode()
        self.send_response(404 if missing else 200)
        self.send_header("Content-Type", "application/json" if found else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Nobody reads it."""


def serve(address, port, certificate):
    """Answers until the program ends."""
    server = http.server.ThreadingHTTPServer((address, port), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever).start()


def ask(method, path, value=None):
    """What the plane's API server answers, by the kubeconfig; none: there is nothing."""
    with open(FLAGS["kubeconfig"], encoding="utf-8") as file:
        config = json.load(file)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(cluster["server"] + path, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def bind():
    """Brings the ResourceBinding of the operator's probe up to date."""
    name = "clusterwright-probe"
    template = ask("GET", f"/api/v1/namespaces/{name}/configmaps/{name}")
    if template is None:
        return
    of = {field: template["metadata"][field] for field in ("namespace", "name", "uid", "resourceVersion")}
    spec = {"resource": {"apiVersion": "v1", "kind": "ConfigMap", **of}}
    bindings = f"/apis/work.karmada.io/v1alpha2/namespaces/{name}/resourcebindings"
    binding = ask("GET", f"{bindings}/{name}-configmap")
    if binding is None:
        metadata = {"name": f"{name}-configmap", "namespace": name}
        kind = {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding"}
        ask("POST", bindings, {**kind, "metadata": metadata, "spec": spec})
    elif binding["spec"] != spec:
        ask("PUT", f"{bindings}/{name}-configmap", {**binding, "spec": spec})


def lead():
    """Takes the Lease where nobody renews it, and renews it."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"
    holder, seen, since = socket.gethostname(), None, 0.0
    while True:
        time.sleep(2)
        try:
            lease = ask("GET", f"{leases}/{NAME}")
            spec = {
                "holderIdentity": holder,
                "leaseDurationSeconds": 15,
                "renewTime": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            }
            if lease is None:
                ask("POST", leases, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}, "spec": spec})
                continue
            if lease["spec"].get("renewTime") != seen:
                seen, since = lease["spec"].get("renewTime"), time.monotonic()
            if lease["spec"].get("holderIdentity") == holder or time.monotonic() - since > 15:
                ask("PUT", f"{leases}/{NAME}", {**lease, "spec": {**lease["spec"], **spec}})
                if NAME == "karmada-controller-manager":
                    bind()
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr, flush=True)


if NAME == "karmada-webhook":
    pair = [os.path.join(FLAGS["cert-dir"], FLAGS[f"tls-{part}-file-name"]) for part in ("cert", "private-key")]
    serve(FLAGS["bind-address"], int(FLAGS["secure-port"]), pair)
elif "secure-port" in FLAGS:
    serve(FLAGS["bind-address"], int(FLAGS["secure-port"]), [FLAGS["tls-cert-file"], FLAGS["tls-private-key-file"]])
if "health-probe-bind-address" in FLAGS:
    host, _, place = FLAGS["health-probe-bind-address"].rpartition(":")
    serve(host, int(place), None)
if NAME in LEADERS:
    lead()
