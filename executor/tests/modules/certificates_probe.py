"""A machine says when its certificates end: those that are served where something serves them, and what a process has not read yet."""

import os
import shutil
import time

from certificates_world import ADDRESS, ETCD_PKI, PKI, PORT, build, certificates_info, days_left, kubeadm, make_pair, play, seen, write

etcd, kubelet = build(days=50)

found = seen()
authorities = {"kubernetes-ca", "front-proxy-ca", "etcd-ca"}
served_by_themselves = {"controller-manager-serving", "scheduler-serving"}
of_a_year = {"apiserver", "apiserver-kubelet-client", "apiserver-etcd-client", "front-proxy-client", "admin.conf", "super-admin.conf",
             "controller-manager.conf", "scheduler.conf", "kubelet.conf", "etcd-server", "etcd-peer", "etcd-healthcheck-client"}
assert set(found) == authorities | served_by_themselves | of_a_year, set(found)
assert {days_left(found[name]) for name in of_a_year} == {50}, found
assert all(days_left(found[name]) > 3000 for name in authorities), found
assert days_left(found["scheduler-serving"]) == 300, found
assert found["apiserver"]["issuer"] == "kubernetes" and found["front-proxy-client"]["issuer"] == "front-proxy-ca", found
assert found["etcd-peer"]["issuer"] == "etcd-ca" and found["apiserver-etcd-client"]["issuer"] == "etcd-ca", found
assert not any(told.get("outdated") for told in found.values()), found

# What is served counts, not what is on disk: here by an API server that reads no new ones.
kubelet.works = False
kubelet.pods["kube-apiserver"].kill()
kubelet.pods["kube-apiserver"].wait()
assert days_left(seen()["apiserver"]) == 50, "who does not answer has what is in its file"
for kind in ("crt", "key"):
    shutil.copy(f"{PKI}/apiserver.{kind}", f"/data/frozen.{kind}")
from certificates_world import COMPONENTS  # noqa: E402

COMPONENTS["kube-apiserver"] = (PORT, "/data/frozen")
kubelet.works = True
deadline = time.monotonic() + 30
while kubelet.starts.count("kube-apiserver") < 2 or not seen()["apiserver"]:
    assert time.monotonic() < deadline
    time.sleep(0.1)
time.sleep(1)
kubeadm("certs", "renew", "apiserver", days=700)
told = seen()["apiserver"]
assert (days_left(told), told.get("outdated")) == (50, True), told

# Controller-manager and scheduler read their kubeconfigs once.
kubeadm("certs", "renew", "scheduler.conf", days=700)
found = seen()
assert (days_left(found["scheduler.conf"]), found["scheduler.conf"].get("outdated")) == (700, True), found["scheduler.conf"]
assert not found["controller-manager.conf"].get("outdated"), found["controller-manager.conf"]
kubelet.pods["kube-scheduler"].kill()
deadline = time.monotonic() + 30
while seen()["scheduler.conf"].get("outdated"):
    assert time.monotonic() < deadline
    time.sleep(0.1)

# etcd reads its pair anew at each handshake.
certificate, key = make_pair("h1", -7 * 24 * 3600)
write(f"{ETCD_PKI}/server.crt", certificate)
write(f"{ETCD_PKI}/server.key", key)
told = seen()["etcd-server"]
assert (days_left(told), told.get("outdated")) == (-7, None), told
result, _ = play(certificates_info, address=ADDRESS, port=PORT)
assert "ended: etcd-server" in result["msg"], result["msg"]

# A worker has less, and a file that is none is named.
for path in ("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf", "manifests/kube-controller-manager.yaml"):
    os.remove(f"/etc/kubernetes/{path}")
assert not {"admin.conf", "scheduler.conf", "controller-manager-serving"} & set(seen()), seen()
write(f"{PKI}/front-proxy-client.crt", "nothing\n")
_, failure = play(certificates_info, address=ADDRESS, port=PORT)
assert failure.reason == "CertificateUnreadable" and "front-proxy-client.crt" in failure.message, failure.message
