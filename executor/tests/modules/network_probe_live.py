"""A machine that is cut off from other nodes' Pods or from the cluster's DNS says so in its Node, and says when it is not any more: with
real sockets and an API with TLS, in a network namespace of this script's own."""

import contextlib
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time

from network_probe_api import PLACE, Apiserver, credentials_as_data, encoded, kubeconfig, make_authority, openssl, rotate
from network_probe_program import PROGRAM, annotation, node_of, program

if os.environ.get("INSIDE") != "yes":
    here = [sys.executable, __file__, *sys.argv[1:]]
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--net", *here], env={**os.environ, "INSIDE": "yes"}, check=False)
    sys.exit(done.returncode)

Peer = program.Peer
NETWORK, DNS = program.NETWORK, program.DNS
SILENT = "timed out"
# Short where silence is waited for; nobody who answers on this machine takes that long.
SHORT = 0.2
LONG = 20


def ip(*words):
    subprocess.run(("ip", *words), check=True)


def network():
    """Addresses of all kinds: silent ones (a neighbour that nobody is), ones without a route, and refused ones."""
    ip("link", "set", "lo", "up")
    ip("link", "add", "eth0", "type", "veth", "peer", "name", "wire")
    for name in ("eth0", "wire"):
        ip("link", "set", name, "up")
    ip("address", "add", "192.0.2.1/24", "dev", "eth0")
    ip("neighbour", "replace", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "nud", "permanent", "dev", "eth0")
    ip("route", "add", "unreachable", "203.0.113.0/24")
    ip("address", "add", "10.220.9.1/24", "dev", "lo")


def closed_port(kind=socket.SOCK_STREAM):
    """A port that is bound, so that nobody else gets it, and closed."""
    keeper = socket.socket(socket.AF_INET, kind)
    keeper.bind(("127.0.0.2", 0))
    return keeper, keeper.getsockname()[1]


def a_peer_that_accepts_or_refuses_answers_and_one_that_is_silent_or_has_no_route_does_not():
    keeper, closed = closed_port()
    with keeper, socket.create_server(("127.0.0.1", 0)) as server:
        accepts, refuses = Peer("accepts", *server.getsockname()), Peer("refuses", "127.0.0.1", closed)
        silent, lost, nowhere = Peer("silent", "192.0.2.9", 1), Peer("lost", "203.0.113.1", 1), Peer("nowhere", "198.51.100.1", 1)
        errors = program.ask_peers((accepts, refuses, silent, lost, nowhere), "", SHORT)
    expected = {accepts: "", refuses: "", silent: SILENT, lost: "no route to host", nowhere: "network is unreachable"}
    assert errors == expected, errors
    assert program.ask_peers((), "", SHORT) == {}


def peers_are_asked_from_the_source_when_it_is_there():
    for source, expected in (("10.220.9.1", "10.220.9.1"), ("10.220.8.1", "127.0.0.1"), ("2001:db8::1", "127.0.0.1")):
        with socket.create_server(("127.0.0.1", 0)) as server:
            peer = Peer("w1", *server.getsockname())
            asking = threading.Thread(target=program.ask_peers, args=((peer,), source, LONG))
            asking.start()
            connection, (address, _port) = server.accept()
            connection.close()
            asking.join()
        assert address == expected, (source, address)


def a_kubelet_sees_whole_handshakes_and_has_nothing_to_log():
    heard = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PLACE / "api.crt", PLACE / "api.key")
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            connection, _address = server.accept()
            with context.wrap_socket(connection, server_side=True, suppress_ragged_eofs=False) as inner:
                heard.append(inner.recv(10))

        serving = threading.Thread(target=serve)
        serving.start()
        peer = Peer("w1", *server.getsockname())
        assert program.ask_peers((peer,), "", LONG) == {peer: ""}
        serving.join()
    assert heard == [b""], heard


class Dns:
    """A DNS server on 127.0.0.1 that answers each question with what `answer` makes of it."""

    def __init__(self, answer):
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = self.socket.getsockname()

        def serve():
            while True:
                question, client = self.socket.recvfrom(4096)
                self.asked.append(question)
                for reply in answer(question, len(self.asked)):
                    self.socket.sendto(reply, client)

        threading.Thread(target=serve, daemon=True).start()

    def expect(self, times):
        """It was asked so often: the last question may be on its way."""
        deadline = time.monotonic() + LONG
        while len(self.asked) < times and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(self.asked) == times, self.asked


def wrong(question):
    return bytes((question[0], question[1] ^ 1)) + question[2:]


def any_answer_with_the_questions_number_counts_and_a_question_is_asked_twice():
    name = "kubernetes.default.svc.cluster.local."
    # Each case: the answers, what is found, how often it was asked. SERVFAIL and NXDOMAIN are answers.
    for answer, wait, found, times in (
        (lambda question, _: [question[:2] + b"\x81\x83" + question[4:]], LONG, "", 1),
        (lambda question, _: [question[:2]], LONG, "", 1),
        (lambda question, _: [wrong(question), b"", b"x", question], LONG, "", 1),
        # What is no answer is not read for ever: it asks again before it reads on.
        (lambda question, count: [*[wrong(question)] * program.STRAYS_LIMIT, question] if count == 1 else [], LONG, "", 2),
        (lambda question, _: [wrong(question), b""], SHORT, SILENT, 2),
    ):
        server = Dns(answer)
        assert program.ask_dns(server.address, name, wait, 2) == found, (found, times)
        server.expect(times)
    labels = b"\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01"
    assert server.asked[0][2:] == b"\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels, server.asked[0]
    keeper, closed = closed_port(socket.SOCK_DGRAM)
    with keeper:
        assert program.ask_dns(("127.0.0.1", closed), name, LONG, 2) == "connection refused"
    assert program.ask_dns(("192.0.2.9", 53), name, SHORT, 2) == SILENT
    assert program.ask_dns(("203.0.113.1", 53), name, SHORT, 2) == "no route to host"


def service_of(apiserver, **timing):
    timing = program.Timing(connect=SHORT, query=LONG, queries=1, **timing)
    return program.Service("m", "kubernetes.default.svc.cluster.local.", program.Api(kubeconfig(apiserver.url), LONG), timing)


def the_kubelets_certificate_is_read_anew_for_each_request_from_files_or_data():
    apiserver = Apiserver()
    rotate("first")
    api = program.Api(kubeconfig(apiserver.url), LONG)
    for name in ("first", "second"):
        rotate(name)
        assert api.request("GET", "/api/v1/nodes/m")["kind"] == "Node"
        assert apiserver.requests[-1] == ("GET", name)
    api = program.Api(kubeconfig(apiserver.url, "data.conf", credentials_as_data()), LONG)
    assert api.request("GET", "/api/v1/nodes/m")["kind"] == "Node" and apiserver.requests[-1] == ("GET", "first")


def refused(api, part):
    try:
        api.request("GET", "/api/v1/nodes/m")
    except program.ApiError as error:
        assert part in str(error), error
        return
    raise AssertionError(f"no failure: {part}")


def an_api_that_cannot_be_trusted_or_says_nonsense_is_a_failure_and_no_crash():
    apiserver = Apiserver()
    rotate("first")
    api = program.Api(kubeconfig(apiserver.url), LONG)
    limit, program.ANSWER_LIMIT = program.ANSWER_LIMIT, 10**5
    apiserver.bodies.extend((b"nonsense", b"[" * 10**5, b'"\xff"', b"x" * (10**5 + 1)))
    for part in ("failed to GET", "failed to GET", "failed to GET", "larger than 100000 bytes"):
        refused(api, part)
    # No more is read than that.
    apiserver.bodies.append(b"x" * (10**5 + 1))
    apiserver.more = 10**9
    refused(api, "larger than 100000 bytes")
    assert not apiserver.bodies
    apiserver.more = 0
    program.ANSWER_LIMIT = limit
    apiserver.refusals.append(403)
    refused(api, "HTTP 403: not")
    refused(program.Api(kubeconfig(apiserver.url.replace("https", "http"), "http.conf"), LONG), "no server with https")
    refused(program.Api(str(PLACE / "absent.conf"), LONG), "absent.conf")
    twice = kubeconfig(f"{apiserver.url}\n    server: https://elsewhere", "twice.conf")
    refused(program.Api(twice, LONG), "server is there 2 times")
    refused(program.Api(kubeconfig(apiserver.url, "none.conf", "    token: x\n"), LONG), "no client-certificate")
    refused(program.Api(kubeconfig(apiserver.url, "bad.conf", "    client-certificate-data: '*'\n"), LONG), "failed to GET")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=ca",
            "-keyout", "o.key", "-out", "o.crt")
    text = pathlib.Path(kubeconfig(apiserver.url, "other.conf")).read_text(encoding="ascii")
    (PLACE / "other.conf").write_text(text.replace(encoded(PLACE / "ca.crt"), encoded(PLACE / "o.crt")), encoding="ascii")
    refused(program.Api(str(PLACE / "other.conf"), LONG), "CERTIFICATE_VERIFY_FAILED")
    # Accepts, and never says a word.
    with socket.create_server(("127.0.0.1", 0)) as mute:
        refused(program.Api(kubeconfig(f"https://127.0.0.1:{mute.getsockname()[1]}", "mute.conf"), SHORT), "timed out")


def a_machine_that_is_cut_off_says_so_and_says_when_it_is_not_any_more():
    apiserver = Apiserver()
    rotate("first")
    keeper, closed = closed_port()
    server = Dns(lambda question, _: [question] if answers else [])
    answers = True
    near = Peer("w1", "127.0.0.1", closed)
    dns = f"127.0.0.1:{server.address[1]}"
    service = service_of(apiserver)
    moments = iter(range(1, 10000, 20))

    def rounds(count):
        for _ in range(count):
            service.round(next(moments))
        return apiserver.heard()

    with keeper:
        assert rounds(1) == ["GET"] and not service.probe.targets, "no annotation: nothing is asked or said"
        apiserver.node = node_of(annotation(near, source="", dns=dns))
        service.refresh_at = 0
        assert rounds(1) == ["GET", "PATCH"]
        assert apiserver.shows() == {NETWORK: ("False", "PeersAnswer"), DNS: ("False", "DNSAnswers")}
        service.refresh_at = 10**6
        assert rounds(5) == [], "nothing new: nothing is asked of the API"
        # The way to the peers is gone; the Node is read before that is said.
        far = (Peer("w2", "192.0.2.9", 1), Peer("w3", "203.0.113.1", 1))
        apiserver.node["metadata"]["annotations"][program.ANNOTATION] = annotation(near, *far, source="", dns=dns)
        service.refresh_at = 0
        assert rounds(1) == ["GET", "PATCH"] and apiserver.shows()[NETWORK] == ("False", "PeersAnswer")
        service.refresh_at = 10**6
        assert rounds(1) == [] and rounds(1) == ["GET", "PATCH"]
        assert apiserver.shows() == {NETWORK: ("True", "PeersUnreachable"), DNS: ("False", "DNSAnswers")}
        message = next(entry["message"] for entry in apiserver.node["status"]["conditions"] if entry["type"] == NETWORK)
        assert message == "1 of 3 nodes answer; not: w2 (192.0.2.9: timed out), w3 (203.0.113.1: no route to host)", message
        assert rounds(2) == [], "it is said"
        answers, service.timing = False, service.timing._replace(query=SHORT)
        assert rounds(3) == ["GET", "PATCH"] and apiserver.shows()[DNS] == ("True", "DNSUnreachable")
        answers, service.timing = True, service.timing._replace(query=LONG)
        assert rounds(1) == ["PATCH"] and apiserver.shows()[DNS] == ("False", "DNSAnswers"), "at once, and without a look"
        # Those that did not answer have left: the next look shows it.
        apiserver.node["metadata"]["annotations"][program.ANNOTATION] = annotation(near, source="", dns=dns)
        service.refresh_at = 0
        assert rounds(1) == ["GET", "PATCH"] and apiserver.shows()[NETWORK] == ("False", "PeersAnswer")
        # The operator takes the annotation away.
        apiserver.node["metadata"]["annotations"].clear()
        service.refresh_at = 0
        assert rounds(1) == ["GET", "PATCH"] and apiserver.shows() == {}
        assert [entry["type"] for entry in apiserver.node["status"]["conditions"]] == ["Ready"], "the kubelet's are its own"


def peers_that_left_are_not_reported():
    apiserver = Apiserver()
    rotate("first")
    service = service_of(apiserver)
    apiserver.node = node_of(annotation(Peer("w2", "192.0.2.9", 1), source="", dns=""))
    service.round(1)
    service.refresh_at = 10**6
    service.round(21)
    apiserver.node = node_of(annotation(source="", dns=""))
    apiserver.heard()
    service.round(41)
    assert apiserver.heard() == ["GET", "PATCH"] and apiserver.shows() == {NETWORK: ("False", "NoPeers")}


def an_api_that_does_not_answer_ends_nothing_and_hears_it_later():
    apiserver = Apiserver()
    rotate("first")
    service = service_of(apiserver)
    apiserver.refusals.append(500)
    service.round(1)
    assert apiserver.heard() == ["GET"] and service.probe.targets is None
    apiserver.node = node_of(annotation(Peer("w2", "203.0.113.1", 1), source="", dns=""))
    service.round(21)
    service.refresh_at = 10**6
    assert apiserver.heard() == ["GET"], "the next round asks again"
    service.round(41)
    apiserver.refusals.append(503)
    service.round(61)
    assert apiserver.heard() == ["GET"] and apiserver.shows() == {}, "a fault is not reported by peers of long ago"
    service.refresh_at = 0
    apiserver.refusals.append(503)
    service.round(71)
    assert apiserver.heard() == ["GET"], "asked once in a round"
    service.refresh_at = 10**6
    apiserver.refusals.append(503)
    apiserver.node["kind"] = "Table"
    service.round(81)
    service.round(101)
    assert apiserver.heard() == ["GET", "GET"] and apiserver.shows() == {} and service.probe.targets, "an answer that is no Node changes nothing"
    apiserver.node["kind"] = "Node"
    service.probe.learn(apiserver.node)
    real, service.learn = service.learn, lambda: None
    apiserver.refusals.append(409)
    service.round(121)
    assert apiserver.heard() == ["PATCH"] and apiserver.shows() == {}
    service.learn = real
    service.round(141)
    assert apiserver.shows() == {NETWORK: ("True", "PeersUnreachable")}


def heartbeats_come_with_each_look_at_the_node():
    apiserver = Apiserver()
    rotate("first")
    apiserver.node = node_of(annotation(dns="", source=""))
    service = service_of(apiserver)
    heard = []
    for number in range(1, 70):
        service.round(number * 20)
        heard.append((number * 20, apiserver.heard()))
    looks = [moment for moment, methods in heard if methods]
    assert all(methods in ([], ["GET", "PATCH"]) for _moment, methods in heard), heard
    assert looks[0] == 20 and looks[1] - looks[0] <= 320, looks
    assert {later - sooner for sooner, later in zip(looks[1:], looks[2:])} == {300}, looks


def machines_that_start_together_do_not_go_on_together():
    apiserver = Apiserver()
    rotate("first")
    pauses = []

    class Woken(Exception):
        pass

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) % 2 == 0:
            raise Woken

    class Clock:
        """Each round takes half a minute: the next one follows at once."""

        def __init__(self):
            self.now = 0.0

        def monotonic(self):
            self.now += 30
            return self.now

    real, looks = program.time, set()
    try:
        for _ in range(20):
            service = service_of(apiserver)
            clock = Clock()
            own = {"sleep": staticmethod(sleep), "monotonic": clock.monotonic}
            program.time = type("Time", (), {**own, "strftime": real.strftime, "gmtime": real.gmtime})
            with contextlib.suppress(Woken):
                service.run()
            looks.add(service.refresh_at)
    finally:
        program.time = real
    first, second = pauses[0::2], pauses[1::2]
    assert all(0 <= pause < 20 for pause in first) and len(set(first)) > 10, first
    assert set(second) == {0.0}, second
    assert all(30 <= look <= 330 for look in looks) and len(looks) > 10, looks


def the_journal_says_each_thing_once():
    lines = []
    program.print = lambda line, **_: lines.append(line)
    try:
        journal = program.Journal()
        for text in ("", "a\x1b[31m\nb", "a\x1b[31m\nb", "c", "", ""):
            journal.tell("API", text, "well again")
        apiserver = Apiserver()
        rotate("first")
        service = service_of(apiserver)
        apiserver.node = node_of("nonsense")
        for number in range(3):
            service.refresh_at = 0
            service.round(number + 1)
    finally:
        del program.print
    assert lines[:3] == ["a [31m b", "c", "well again"], lines
    assert len(lines) == 4 and program.ANNOTATION in lines[3], lines


def it_stays_below_forty_megabytes_and_keeps_no_file_open():
    apiserver = Apiserver()
    apiserver.node = node_of(annotation(Peer("w1", "127.0.0.1", 1), Peer("w2", "203.0.113.1", 1), source="", dns="203.0.113.1:53"))
    apiserver.node["status"]["images"] = [{"names": ["x" * 200] * 5, "sizeBytes": 1}] * 50
    script = f"""
import importlib.util, os, re, sys
specification = importlib.util.spec_from_file_location("p", {str(PROGRAM)!r})
program = importlib.util.module_from_spec(specification)
sys.modules["p"] = program
specification.loader.exec_module(program)
client = program.Api({kubeconfig(apiserver.url, "data.conf", credentials_as_data())!r}, {LONG})
service = program.Service("m", "kubernetes.default.svc.cluster.local.", client)
opened = []
for number in range(30):
    service.refresh_at = 0
    service.round(number + 1)
    opened.append(len(os.listdir("/proc/self/fd")))
assert len(set(opened)) == 1, opened
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1))
"""
    done = subprocess.run((sys.executable, "-I", "-S", "-c", script), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout.splitlines()[-1])
    assert peak < 40 * 1024, f"{peak} kB"
    assert apiserver.shows()[NETWORK] == ("False", "PeersAnswer") and apiserver.shows()[DNS] == ("True", "DNSUnreachable"), apiserver.shows()


for promise in (
    network,
    make_authority,
    a_peer_that_accepts_or_refuses_answers_and_one_that_is_silent_or_has_no_route_does_not,
    peers_are_asked_from_the_source_when_it_is_there,
    a_kubelet_sees_whole_handshakes_and_has_nothing_to_log,
    any_answer_with_the_questions_number_counts_and_a_question_is_asked_twice,
    the_kubelets_certificate_is_read_anew_for_each_request_from_files_or_data,
    an_api_that_cannot_be_trusted_or_says_nonsense_is_a_failure_and_no_crash,
    a_machine_that_is_cut_off_says_so_and_says_when_it_is_not_any_more,
    peers_that_left_are_not_reported,
    an_api_that_does_not_answer_ends_nothing_and_hears_it_later,
    heartbeats_come_with_each_look_at_the_node,
    machines_that_start_together_do_not_go_on_together,
    the_journal_says_each_thing_once,
    it_stays_below_forty_megabytes_and_keeps_no_file_open,
):
    promise()
