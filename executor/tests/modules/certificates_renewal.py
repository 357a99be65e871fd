"""Leaf certificates are renewed by real kubeadm and from what a run brings, while clients work; what was cut short is taken up; and with
everything ended it goes as well."""

import http.client
import json
import os
import ssl
import subprocess
import threading
import time

from certificates_world import (
    ADDRESS,
    COMPONENTS,
    DAY,
    ETCD_PKI,
    ETCD_READS,
    PKI,
    PORT,
    build,
    days_left,
    kubeadm,
    pairs,
    renew,
    seen,
)
from machine_world import program, write

from ansible_collections.clusterwright.cluster.plugins.module_utils import kubeadm_certificates, restarts, units
from ansible_collections.clusterwright.cluster.plugins.modules import certificates_renew

OF_KUBEADM = {"apiserver", "apiserver-kubelet-client", "front-proxy-client", "admin.conf", "super-admin.conf", "controller-manager.conf",
              "scheduler.conf"}
OF_ETCD = {"apiserver-etcd-client", "etcd-server", "etcd-peer", "etcd-healthcheck-client"}
ALL = OF_KUBEADM | OF_ETCD

etcd, kubelet = build(days=50)
STARTED = "InvocationID=one\\nExecMainStartTimestampMonotonic=" + str(int(time.monotonic() * 1_000_000))
program("systemctl", f'[ "$1" = show ] && printf "{STARTED}\\n"; exit 0')


def lasting(found=None):
    found = found or seen()
    return {name: days_left(found[name]) for name in ALL}


def renewed(days=365):
    return lasting() == {name: days for name in ALL}


class Client(threading.Thread):
    """Speaks to the API server by new connections, and to etcd by a writer of its own, until it is asked to end; each failure counts."""

    def __init__(self):
        super().__init__(daemon=True)
        self.works, self.answers, self.failures = True, 0, []

    def run(self):
        while self.works:
            try:
                context = ssl.create_default_context(cafile=f"{PKI}/ca.crt")
                connection = http.client.HTTPSConnection(ADDRESS, PORT, timeout=5, context=context)
                connection.request("GET", "/readyz")
                assert connection.getresponse().status == 200
                connection.close()
                self.answers += 1
            except (OSError, AssertionError, http.client.HTTPException) as failure:
                self.failures.append(repr(failure))
            time.sleep(0.02)

    def end(self):
        # On a busy machine all is renewed before it has asked often.
        deadline = time.monotonic() + 30
        while self.answers <= 10 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.works = False
        self.join()
        assert self.answers > 10, self.answers
        # kubeadm writes a certificate and its key one after the other: whoever reads them at each handshake, as this API server does,
        # may meet them between, and again a moment later on a busy machine. The real one keeps the pair that it has.
        assert len(self.failures) <= 3, self.failures


def put():
    tls = (f"--cacert={ETCD_PKI}/ca.crt", f"--cert={ETCD_PKI}/healthcheck-client.crt", f"--key={ETCD_PKI}/healthcheck-client.key")
    done = subprocess.run(("etcdctl", *tls, "--endpoints=https://127.0.0.1:2379", "put", "x", "y"), check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def all_leaves_are_renewed_while_clients_work():
    assert lasting() == {name: 50 for name in ALL}
    brought = pairs(365 * DAY)
    result, _ = renew(brought, check=True)
    assert result["changed"] and "apiserver" in result["msg"] and "peer.crt" in result["msg"], result["msg"]
    assert lasting() == {name: 50 for name in ALL}, "a probe changes nothing"
    open_connection = http.client.HTTPSConnection(ADDRESS, PORT, context=ssl.create_default_context(cafile=f"{PKI}/ca.crt"))
    open_connection.request("GET", "/readyz")
    open_connection.getresponse().read()
    client, starts, member = Client(), list(kubelet.starts), etcd.process.pid
    client.start()
    result, failure = renew(brought)
    client.end()
    assert failure is None, failure.message
    assert result["changed"] and renewed(), lasting()
    told = {told["name"]: told for told in result["clusterwright"]["certificates"]}
    assert lasting(told) == {name: 365 for name in ALL} and not any(one.get("outdated") for one in told.values()), told
    assert sorted(kubelet.starts[len(starts):]) == ["kube-controller-manager", "kube-scheduler"], "those that read once, each once"
    assert etcd.process.poll() is None and etcd.process.pid == member
    assert not restarts.due("etcd.service", units.state("etcd.service"), ETCD_READS), "etcd owes no restart"
    open_connection.request("GET", "/readyz")
    assert open_connection.getresponse().status == 200, "what was open stays open"
    put()
    result, _ = renew(brought, check=True)
    assert not result["changed"], result["msg"]
    starts = list(kubelet.starts)
    result, _ = renew(brought)
    assert not result["changed"] and kubelet.starts == starts, "a second time nothing is due"


def names_of_the_api_server_stay():
    text = subprocess.run(("openssl", "x509", "-noout", "-text", "-in", f"{PKI}/apiserver.crt"), check=True, capture_output=True, text=True)
    assert "DNS:k8s.example" in text.stdout and "IP Address:10.7.0.1" in text.stdout, text.stdout


def what_joins_later_follows_the_validity():
    _, failure = renew([], validity=30 * DAY, before=10 * DAY)
    assert failure is None, failure.message
    with open("/data/kubeadm-config.json", encoding="utf-8") as source:
        text = json.load(source)["data"]["ClusterConfiguration"]
    assert "certificateValidityPeriod: 2592000s\n" in text and "clusterName: a\n" in text and "- k8s.example\n" in text, text


def what_was_cut_short_is_taken_up():
    brought = pairs(700 * DAY)
    calls, attempt = [], kubeadm_certificates.attempt

    def cut_short(*argv, **more):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(argv[3])
        return attempt(*argv, **more)

    kubeadm_certificates.attempt = cut_short
    try:
        renew(brought, before=400 * DAY, validity=700 * DAY)
        raise AssertionError("it was cut short")
    except KeyboardInterrupt:
        pass
    kubeadm_certificates.attempt = lambda *argv, **more: calls.append(argv[3]) or attempt(*argv, **more)
    start_anew = certificates_renew.start_anew
    certificates_renew.start_anew = lambda names: (_ for _ in ()).throw(KeyboardInterrupt)
    try:
        renew(brought, before=400 * DAY, validity=700 * DAY)
        raise AssertionError("it was cut short again, before anything was started anew")
    except KeyboardInterrupt:
        pass
    assert sorted(calls) == sorted(OF_KUBEADM), f"each once: {calls}"
    certificates_renew.start_anew = start_anew
    result, _ = renew(brought, check=True, before=400 * DAY)
    assert result["changed"] and "scheduler.conf" in result["msg"], "its process has the old one"
    starts = list(kubelet.starts)
    result, failure = renew(brought, before=400 * DAY, validity=700 * DAY)
    kubeadm_certificates.attempt = attempt
    assert failure is None and result["changed"], failure
    assert sorted(kubelet.starts[len(starts):]) == ["kube-controller-manager", "kube-scheduler"]
    assert len(calls) == len(OF_KUBEADM) and renewed(700), lasting()


def with_everything_ended_it_goes_as_well():
    kubeadm("certs", "renew", "all", days=1 / DAY)
    for entry in pairs(-7 * DAY):
        write(entry["path"], entry["content"], int(entry["mode"], 8))
    time.sleep(2)
    found = seen()
    assert all(found[name]["expiresAt"] < time.time() for name in ALL), found
    result, failure = renew(pairs(365 * DAY))
    assert failure is None, failure.message
    assert renewed(), lasting()
    assert "does not have" not in result["msg"], result["msg"]
    put()


def one_that_is_not_taken_up_is_told():
    for kind in ("crt", "key"):
        with open(f"{PKI}/apiserver.{kind}", encoding="ascii") as source:
            write(f"/data/frozen.{kind}", source.read())
    COMPONENTS["kube-apiserver"] = (PORT, "/data/frozen")
    kubelet.pods["kube-apiserver"].kill()
    kubelet.pods["kube-apiserver"].wait()
    time.sleep(2)
    _, failure = renew([], before=400 * DAY, validity=700 * DAY, timeout=3)
    assert failure.reason == "CertificateNotServed", failure
    assert f"apiserver: {ADDRESS}:{PORT} shows another one" in failure.message, failure.message


def without_the_authoritys_key_it_says_why():
    import os

    os.rename(f"{PKI}/front-proxy-ca.key", "/data/front-proxy-ca.key")
    _, failure = renew([], before=900 * DAY, validity=1000 * DAY)
    assert failure.reason == "KubeadmFailed" and "front-proxy-client" in failure.message, failure.message


all_leaves_are_renewed_while_clients_work()
names_of_the_api_server_stay()
what_joins_later_follows_the_validity()
what_was_cut_short_is_taken_up()
with_everything_ended_it_goes_as_well()
one_that_is_not_taken_up_is_told()
without_the_authoritys_key_it_says_why()
