"""The balancer of a machine gives connections to what serves on any machine, and closes none when it is given another configuration. With
the real haproxy, where this machine or a machine's image of the lab has one; else a stand-in that takes every configuration, and says so."""

import os
import socket
import ssl
import threading
import time

IMAGE = os.environ.get("HAPROXY_ROOT", "")
os.environ["MACHINE_SOURCES"] = IMAGE

from machine_world import enter, play, program, write  # noqa: E402

import tls_world  # noqa: E402

if "CLUSTERWRIGHT_INSIDE" not in os.environ:
    tls_world.certificate("plane")
else:
    CERTIFICATE = "".join((tls_world.PLACE / f"plane{end}").read_text(encoding="utf-8") for end in (".crt", ".key"))
enter()

import systemd_standin  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils import karmada  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.module_utils.command import find  # noqa: E402
from ansible_collections.clusterwright.cluster.plugins.modules import karmada_balancer, karmada_info  # noqa: E402

systemd_standin.install()
write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nhaproxy:x:99:99::/:/bin/false\n")
write("/etc/group", "root:x:0:\nhaproxy:x:99:\n")
REAL = "/usr/sbin/haproxy" if os.path.exists("/usr/sbin/haproxy") else IMAGE and f"{IMAGE}/usr/sbin/haproxy"


def install_haproxy() -> None:
    """haproxy of the machine's image, with the libraries of that; else the stand-in."""
    if REAL == "/usr/sbin/haproxy":
        return
    if REAL:
        # It starts itself anew, so that the libraries are to be found by whoever starts it.
        libraries = f"{IMAGE}/usr/lib/{os.uname().machine}-linux-gnu"
        program("haproxy", f'export LD_LIBRARY_PATH={libraries}; exec {REAL} "$@"')
        return
    print("there is no haproxy here: its configuration was not checked (lab build makes an image that has one)")
    listen = "import socket, sys, time; s = [socket.create_server(('127.0.0.1', int(p))) for p in sys.argv[1:]]; time.sleep(1000)"
    program("haproxy", f'[[ $1 == -c ]] && exit 0; exec /usr/bin/python3 -c "{listen}" 17443 18443')


def frontends(*backends: str) -> list:
    return [{"name": name, "port": port, "backends": list(backends)} for name, port in (("aggregated-apiserver", 17443), ("webhook", 18443))]


def bring(digest: str, wanted: list, check: bool = False) -> tuple:
    result, failure = play(karmada_balancer, check, digest=digest, frontends=wanted, timeout_seconds=20)
    assert failure is None, failure.message
    return result["changed"], systemd_standin.verbs()


class Component:
    """What serves on a machine: it says its name on each connection, once for each byte that it gets."""

    def __init__(self, name: str) -> None:
        self.name = name.encode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("/data/plane.pem")
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.context = context
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                connection, _peer = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        try:
            with self.context.wrap_socket(connection, server_side=True) as secure:
                while secure.recv(1):
                    secure.sendall(self.name)
        except OSError:
            pass

    def end(self) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def connect() -> ssl.SSLSocket:
    return ssl._create_unverified_context().wrap_socket(socket.create_connection(("127.0.0.1", 17443), 5))


def ask(connection: ssl.SSLSocket) -> str:
    connection.settimeout(5)
    connection.sendall(b"x")
    return connection.recv(1).decode()


def answers() -> set:
    """Who answered on some connections; empty where one failed."""
    found = set()
    for _number in range(6):
        try:
            with connect() as connection:
                found.add(ask(connection))
        except OSError:
            return set()
    return found


def wait_for(expected: set) -> None:
    deadline = time.monotonic() + 20
    while answers() != expected:
        assert time.monotonic() < deadline, (answers(), expected, systemd_standin.known(karmada.BALANCER_UNIT))
        time.sleep(0.2)


install_haproxy()
assert find("haproxy")
write("/data/plane.pem", CERTIFICATE)
one, two = Component("1"), Component("2")
UNIT = karmada.BALANCER_UNIT
assert bring("d1", frontends(one.address, two.address), check=True) == (True, []) and not os.path.exists(karmada.HOME)
# The stand-in of systemd starts what is in PATH here.
karmada_balancer.UNIT_BODY = karmada_balancer.UNIT_BODY.replace("/usr/sbin/haproxy", find("haproxy"))
changed, told = bring("d1", frontends(one.address, two.address))
assert changed and told == [f"enable {UNIT}", f"reset-failed {UNIT}", f"start {UNIT}"], told
assert bring("d1", frontends(one.address, two.address)) == (False, [])
assert bring("d1", frontends(one.address, two.address), check=True) == (False, [])
assert karmada.digest_of(UNIT) == "d1"
parts = play(karmada_info, parts=[{"name": "balancer", "unit": UNIT, "health": {}}])[0]["clusterwright"]["parts"]
assert parts == [{"name": "balancer", "digest": "d1", "healthy": True}]

for wanted, part in (
    ([], "is empty"),
    (frontends("localhost:1"), "localhost:1"),
    (frontends("127.0.0.1:0"), "127.0.0.1:0"),
    (frontends(), "has no backends"),
    ([{"name": "a b", "port": 1, "backends": ["127.0.0.1:1"]}], "a b"),
    ([*frontends(one.address), {"name": "again", "port": 17443, "backends": [one.address]}], "17443"),
):
    _result, failure = play(karmada_balancer, digest="d9", frontends=wanted, timeout_seconds=1)
    assert failure.reason == "InvalidVariables" and part in failure.message, failure.message
assert karmada.digest_of(UNIT) == "d1" and systemd_standin.verbs() == []

if REAL:
    wait_for({"1", "2"})
    held = connect()
    name = ask(held)
    # Another machine comes: haproxy reads it again, and the connection goes on.
    three = Component("3")
    assert bring("d2", frontends(one.address, two.address, three.address)) == (True, [f"reload {UNIT}"])
    wait_for({"1", "2", "3"})
    assert ask(held) == name and karmada.digest_of(UNIT) == "d2"
    # One that ends is found out, and nobody else is asked in its place in vain.
    three.end()
    wait_for({"1", "2"})
    # A configuration that haproxy refuses leaves the one that is there.
    head, karmada_balancer.HEAD = karmada_balancer.HEAD, karmada_balancer.HEAD + "nonsense\n"
    _result, failure = play(karmada_balancer, digest="d3", frontends=frontends(one.address), timeout_seconds=1)
    karmada_balancer.HEAD = head
    assert failure.reason == "InvalidVariables" and "haproxy refuses" in failure.message and "nonsense" in failure.message, failure.message
    assert karmada.digest_of(UNIT) == "d2" and os.listdir(karmada.BALANCER) == ["haproxy.cfg"] and answers() == {"1", "2"}
    assert bring("d2", frontends(one.address, two.address, three.address)) == (False, [])
