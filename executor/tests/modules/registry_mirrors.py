"""Mirrors are asked as the files that we write say: by the real containerd, over TLS, with the login and the authority that are configured;
and further runtimes are in the configuration that it reads."""

import atexit
import base64
import http.server
import json
import os
import pathlib
import ssl
import subprocess
import sys
import threading
import time
import tomllib

PLACE = pathlib.Path(sys.argv[1])
COLLECTION = os.environ["PYTHONPATH"]
VENV = os.environ.get("CLUSTERWRIGHT_ANSIBLE_VENV") or os.path.expanduser("~/.cache/clusterwright/venv")
CACHE = pathlib.Path(os.environ["KUBERNETES_PROGRAMS"]).parents[2]
BIN = max((CACHE / "containerd").iterdir()) / "bin"
LOGIN = "Basic " + base64.b64encode(b"fleet:pass").decode()
ASKED: list = []


def sh(*argv: object) -> str:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


class Registry(http.server.BaseHTTPRequestHandler):
    """Has nothing, and notes who asks."""

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        ASKED.append((self.path, self.headers.get("Authorization")))
        self.send_response(404)
        self.end_headers()

    do_HEAD = do_GET  # pylint: disable=invalid-name

    def log_message(self, *_words: object) -> None:
        pass


class Served(http.server.ThreadingHTTPServer):
    """Handshakes that fail are a client's affair."""

    def handle_error(self, *_request: object) -> None:
        pass


sh("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mirror", "-addext", "subjectAltName=IP:127.0.0.1",
   "-keyout", PLACE / "key", "-out", PLACE / "ca")  # fmt: skip
server = Served(("127.0.0.1", 0), Registry)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(PLACE / "ca", PLACE / "key")
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
URL = f"https://127.0.0.1:{server.server_port}"

# What the role makes of the variables.
SECRETS = PLACE / "secrets"
SECRETS.mkdir()
(SECRETS / "registry.one").write_text(LOGIN, encoding="ascii")
WRITTEN = "{{ [containerd_mirror_files, containerd_mirror_secrets, containerd_files] | to_json }}"
(PLACE / "hosts.ini").write_text("m1\n", encoding="ascii")


def made(registries: list, runtimes: list) -> list:
    """Files, secrets and configuration, by path: {content, mode}."""
    role = f"{COLLECTION}/roles/containerd"
    play = {
        "hosts": "all", "connection": "local", "gather_facts": False,
        "vars_files": [f"{COLLECTION}/roles/variables/defaults/main.yml", f"{role}/vars/main.yml"],
        "tasks": [{"ansible.builtin.copy": {"dest": str(PLACE / "made"), "content": WRITTEN, "mode": "0600"}}],
    }  # fmt: skip
    (PLACE / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    if not (PLACE / "templates").exists():
        os.symlink(f"{role}/templates", PLACE / "templates")
    machine = {"may_lower_oom_score": True, "cgroup_driver": "systemd"}
    given = {
        "secrets_dir": str(SECRETS), "containerd_registries_mirrors": registries, "containerd_settings": {"runtimes": runtimes},
        "containerd_installed": {"versions": {"registry.k8s.io/pause": "3.10"}}, "ansible_facts": {"clusterwright_machine": machine},
    }  # fmt: skip
    (PLACE / "given.json").write_text(json.dumps(given), encoding="utf-8")
    environment = {**os.environ, "ANSIBLE_CONFIG": f"{COLLECTION}/ansible.cfg", "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.default"}
    environment["LC_ALL"] = "C.UTF-8"
    argv = [f"{VENV}/bin/ansible-playbook", "-i", f"{PLACE}/hosts.ini", "-e", f"@{PLACE}/given.json", str(PLACE / "play.yml")]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert LOGIN not in done.stdout, "Ansible says nothing of a login"
    return [{file["path"]: file for file in files} for files in json.loads((PLACE / "made").read_text(encoding="utf-8"))]


CERTIFICATE = (PLACE / "ca").read_text(encoding="ascii")
MIRRORS = [
    {"prefix": "plain.example", "mirrors": [{"host": URL, "capabilities": ["pull", "resolve"]}]},
    {"prefix": "believed.example", "mirrors": [{"host": URL, "skip_verify": True}]},
    {"prefix": "login.example:5000", "ca": CERTIFICATE, "login": "registry.one", "mirrors": [{"host": URL}, {"host": f"{URL}/second"}]},
]
RUNTIMES = [
    {"name": "gvisor", "type": "io.containerd.runsc.v1", "configPath": "/etc/runsc.toml"},
    {"name": "kata", "type": "io.containerd.kata.v2", "path": "/opt/kata/bin/containerd-shim-kata-v2"},
    {"name": "crun", "type": "io.containerd.runc.v2", "binaryName": "/usr/bin/crun"},
]
files, secrets, configuration = made(MIRRORS, RUNTIMES)
FOLDER = "/etc/containerd/certs.d"
assert sorted(files) == [f"{FOLDER}/{name}" for name in ("believed.example/hosts.toml", "login.example:5000/ca.crt", "plain.example/hosts.toml")]
assert list(secrets) == [f"{FOLDER}/login.example:5000/hosts.toml"] and secrets[f"{FOLDER}/login.example:5000/hosts.toml"]["mode"] == "0600"
for path, file in {**files, **secrets}.items():
    assert file["content"].startswith("# Written by clusterwright.\n"), "so that it is found and taken back"
    target = pathlib.Path(str(PLACE) + path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(file["content"].replace(FOLDER, str(PLACE) + FOLDER), encoding="utf-8")

# The real containerd asks them.
config = PLACE / "containerd.toml"
config.write_text(f"""version = 3
root = '{PLACE}/root'
state = '{PLACE}/state'
disabled_plugins = ['io.containerd.cri.v1.images', 'io.containerd.cri.v1.runtime', 'io.containerd.grpc.v1.cri']
[grpc]
address = '{PLACE}/s'
""", encoding="utf-8")  # fmt: skip
log = open(PLACE / "log", "w", encoding="utf-8")
daemon = subprocess.Popen([BIN / "containerd", "-c", config], stdout=log, stderr=log)
atexit.register(daemon.kill)
for _round in range(200):
    if os.path.exists(PLACE / "s"):
        break
    time.sleep(0.1)


def pull(image: str) -> tuple:
    ASKED.clear()
    argv = [BIN / "ctr", "-a", PLACE / "s", "images", "pull", "--hosts-dir", str(PLACE) + FOLDER, image]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode, "the registry has nothing"
    return list(ASKED), done.stderr


asked, said = pull("plain.example/x:1")
assert not asked and "certificate" in said, said
asked, said = pull("believed.example/x:1")
assert asked and all(login is None for _path, login in asked), (asked, said)
asked, said = pull("login.example:5000/x:1")
assert {login for _path, login in asked} == {LOGIN}, (asked, said)
assert {path.partition("x")[0] for path, _login in asked} == {"/v2/", "/second/v2/"}, asked
daemon.terminate()

# Runtimes.
for path, file in configuration.items():
    if path.endswith("config.toml"):
        config.write_text(file["content"], encoding="utf-8")
READ = tomllib.loads(sh(BIN / "containerd", "-c", config, "config", "dump"))
HAS = READ["plugins"]["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]
assert sorted(HAS) == ["crun", "gvisor", "kata", "runc"]
assert (HAS["gvisor"]["runtime_type"], HAS["gvisor"]["runtime_path"]) == ("io.containerd.runsc.v1", "")
assert HAS["gvisor"]["options"] == {"ConfigPath": "/etc/runsc.toml", "TypeUrl": "io.containerd.runsc.v1.options"}
assert HAS["kata"]["runtime_type"] == "io.containerd.kata.v2" and HAS["kata"]["runtime_path"] == RUNTIMES[1]["path"]
assert (HAS["crun"]["options"]["BinaryName"], HAS["crun"]["options"]["SystemdCgroup"]) == ("/usr/bin/crun", True)
assert HAS["runc"]["options"]["SystemdCgroup"] and HAS["runc"]["runtime_type"] == "io.containerd.runc.v2"
