"""The authorities and the service-account key of a control plane are replaced under a client, each through the states in which both are
trusted, the new one signs, and the old one is dropped. Everything but the kubelet is real."""

import base64
import http.client
import os
import ssl
import threading
import time

from authorities_world import ADDRESS, PKI, PORT, Member, build, client, make_leaf_once, openssl, read, wait, write

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, certificates, component_process, issuers, kubeconfigs
from ansible_collections.clusterwright.cluster.plugins.modules import (
    certificate_authorities,
    certificates_renew,
    control_plane_configuration,
    signing_authority,
)
from machine_world import play

SIGNING = [{"name": "cluster-signing-cert-file", "value": f"{PKI}/ca-signer.crt"}]
kubelet, member, state = build()


class Client(threading.Thread):
    """Asks all the time by new connections, as a user with both authorities and a certificate of the one that signed at first."""

    def __init__(self, pair):
        super().__init__(daemon=True)
        self.context = ssl.create_default_context(cadata=read("/data/1/ca.crt") + read("/data/2/ca.crt"))
        self.context.load_cert_chain(api.in_memory("\n".join(pair).encode()))
        self.works, self.answers, self.failures, self.longest = True, 0, [], 0.0

    def run(self):
        last = time.monotonic()
        while self.works:
            try:
                connection = http.client.HTTPSConnection(ADDRESS, PORT, timeout=5, context=self.context)
                connection.request("GET", "/api/v1/namespaces/default")
                status = connection.getresponse().status
                connection.close()
                if status == 200:
                    self.answers, self.longest, last = self.answers + 1, max(self.longest, time.monotonic() - last), time.monotonic()
                elif status in (401,):
                    self.failures.append(status)
            except (ssl.SSLCertVerificationError, ssl.SSLEOFError) as failure:
                if isinstance(failure, ssl.SSLCertVerificationError):
                    self.failures.append(failure)
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)

    def end(self):
        self.works = False
        self.join()
        assert self.answers > 10 and not self.failures, (self.answers, self.failures[:3])
        return self.longest


def status(pair=None, token="", path="/api/v1/namespaces/default", headers=()):
    """How the API server answers who shows this."""
    context = ssl.create_default_context(cafile=f"{PKI}/ca.crt")
    if pair:
        context.load_cert_chain(api.in_memory("\n".join(pair).encode()))
    connection = http.client.HTTPSConnection(ADDRESS, PORT, timeout=5, context=context)
    connection.request("GET", path, headers={**dict(headers), **({"Authorization": f"Bearer {token}"} if token else {})})
    return connection.getresponse().status


def began(before, expected):
    """What began since then, of what is expected. While an API server is away the others may end by themselves, and begin before it with the
    files that are there: nothing is owed for them then, and the order is authorities_cut_off.py's to prove."""
    found = kubelet.starts[before:]
    return sorted({name for name in expected if name in found} if "kube-apiserver" in expected else found)


# Those that know this machine's API server alone follow it.
ALL = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]


def brought(state, starts, check=True):
    """Plays the step; what started anew must be that."""
    before = len(kubelet.starts)
    if check:
        result, failure = state.play(check=True)
        assert failure is None and result["changed"], (failure and failure.message, result)
        assert kubelet.starts[before:] == []
    result, failure = state.play()
    assert failure is None, f"{failure.reason}: {failure.message}"
    assert result["changed"], result["msg"]
    assert began(before, starts) == sorted(starts), (kubelet.starts[before:], result["msg"])
    for again in (True, False):
        result, failure = state.play(check=again)
        assert failure is None and not result["changed"], (failure and failure.message, result)
    assert began(before, starts) == sorted(starts), "a second time nothing is due"
    assert not kubelet.failure, kubelet.failure


def admin(generation):
    return make_leaf_once(generation, "ca", "/O=system:masters/CN=user")


def configured(check=False):
    ends = [{"name": "shutdown-watch-termination-grace-period", "value": "10s"}]
    components = [{"name": "kube-apiserver", "arguments": ends}, {"name": "kube-controller-manager", "arguments": SIGNING}, {"name": "kube-scheduler"}]
    return play(control_plane_configuration, check, components=components, address=ADDRESS, port=PORT, timeout_seconds=120)


def csr_signer():
    """Which generation signs what the controller-manager is asked to sign."""
    key = openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout").decode()
    write("/data/csr.key", key)
    request = openssl("req", "-new", "-key", "/data/csr.key", "-subj", "/CN=someone")
    name = f"r{time.monotonic_ns()}"
    path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}"
    root = client("/etc/kubernetes/super-admin.conf")
    root.request("POST", path.rpartition("/")[0], {"metadata": {"name": name}, "spec": {
        "request": base64.b64encode(request).decode(), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}})  # fmt: skip
    found = root.get(path)
    found["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
    root.request("PUT", f"{path}/approval", found)
    wait(lambda: (root.get(path)["status"] or {}).get("certificate"), 60)
    pair = base64.b64decode(root.get(path)["status"]["certificate"]).decode() + key
    return [number for number in (1, 2) if issuers.is_from(pair, read(f"/data/{number}/ca.crt"))]


def the_signer_has_a_file_of_its_own():
    os.remove(f"{PKI}/ca-signer.crt")
    result, _ = play(signing_authority, True)
    assert result["changed"] and not os.path.exists(f"{PKI}/ca-signer.crt")
    assert play(signing_authority)[0]["changed"] and read(f"{PKI}/ca-signer.crt") == read("/data/1/ca.crt")
    assert not play(signing_authority)[0]["changed"]
    before = len(kubelet.starts)
    result, failure = configured()
    assert failure is None and result["changed"], failure and failure.message
    # The kubelet is helped along.
    both = ["kube-apiserver", "kube-controller-manager"]
    assert began(before, both) == both, kubelet.starts[before:]
    assert f"--cluster-signing-cert-file={PKI}/ca-signer.crt" in component_process.flags(component_process.pids("kube-controller-manager")[0])
    assert not configured(True)[0]["changed"]
    result, failure = state.play()
    assert failure is None and not result["changed"], (failure and failure.message, result)


def the_kubernetes_authority_is_replaced():
    old, new = admin(1), admin(2)
    assert (status(old), status(new)) == (200, 401)
    user = Client(old)
    user.start()
    both = state.but(ca=(1, 2))
    both.next_client = "\n".join(make_leaf_once(2, "ca", "/CN=next-client"))
    brought(both, ["kube-controller-manager", "kube-scheduler", "kubelet"])
    assert (status(old), status(new)) == (200, 200)
    assert csr_signer() == [1]
    root = client("/etc/kubernetes/admin.conf")
    wait(lambda: len(certificates.all_in(root.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")["data"]["ca.crt"])) == 2, 60)
    for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet"):
        assert len(kubeconfigs.authorities(read(f"/etc/kubernetes/{name}.conf"))) == 2, name
    # A renewal between the states leaves both in the kubeconfigs.
    params = {"address": ADDRESS, "port": PORT, "node_name": "h1", "version": state.parameters()["version"], "files": [], "secrets": [],
              "etcd_reads": [], "validity_seconds": 365 * 24 * 3600, "timeout_seconds": 60}  # fmt: skip
    assert not play(certificates_renew, True, renew_before_seconds=0, **params)[0]["changed"]
    result, failure = play(certificates_renew, renew_before_seconds=366 * 24 * 3600, **params)
    assert failure is None, failure.message
    assert len(kubeconfigs.authorities(read("/etc/kubernetes/scheduler.conf"))) == 2
    sign = both.but(ca=(2, 1))
    brought(sign, ["kube-controller-manager", "kube-scheduler", "kubelet"], check=False)
    for name in ("apiserver", "apiserver-kubelet-client"):
        assert issuers.is_from(read(f"{PKI}/{name}.crt") + read(f"{PKI}/{name}.key"), read("/data/2/ca.crt")), name
    for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet"):
        assert issuers.is_from(api.client_pair(read(f"/etc/kubernetes/{name}.conf")), read("/data/2/ca.crt")), name
    assert (status(old), status(new), csr_signer()) == (200, 200, [2])
    longest = user.end()
    user = Client(new)
    user.start()
    only = sign.but(ca=(2,))
    brought(only, ["kube-controller-manager", "kube-scheduler", "kubelet"])
    wait(lambda: status(old) == 401, 90)
    assert (status(new), csr_signer()) == (200, [2])
    print(f"the API was away for at most {max(longest, user.end()):.1f} s while its authority was replaced")
    return only


def the_front_proxys_authority_is_replaced(state):
    def shown(generation):
        pair = make_leaf_once(generation, "front-proxy-ca", "/CN=front-proxy-client")
        return status(pair, headers={"X-Remote-User": "someone", "X-Remote-Group": "system:masters"}.items())

    assert (shown(1), shown(2)) == (200, 401)
    both = state.but(**{"front-proxy-ca": (1, 2)})
    brought(both, ["kube-controller-manager"])
    wait(lambda: (shown(1), shown(2)) == (200, 200), 90)
    sign = both.but(**{"front-proxy-ca": (2, 1)})
    brought(sign, ["kube-controller-manager"])
    assert issuers.is_from(read(f"{PKI}/front-proxy-client.crt") + read(f"{PKI}/front-proxy-client.key"), read("/data/2/front-proxy-ca.crt"))
    only = sign.but(**{"front-proxy-ca": (2,)})
    brought(only, ["kube-controller-manager"])
    wait(lambda: (shown(1), shown(2)) == (401, 200), 90)
    return only


def token():
    """A token of the service account default, as the API server makes it now."""
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    return client("/etc/kubernetes/admin.conf").request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]


def asks(made):
    # 403: it is known, and has no rights there.
    return status(token=made)


def the_service_account_key_is_replaced(state):
    old = token()
    assert asks(old) == 403
    both = state.but(sa=(1, 2))
    brought(both, ALL)
    assert asks(old) == 403 and asks(token()) == 403
    sign = both.but(sa=(2, 1))
    brought(sign, ALL)
    new = token()
    assert asks(old) == 403 and asks(new) == 403
    only = sign.but(sa=(2,))
    brought(only, ALL)
    assert (asks(old), asks(new), asks(token())) == (401, 403, 403)
    return only


def etcds_authority_is_replaced(state):
    global member  # pylint: disable=global-statement
    for generations in ((1, 2), (2, 1), (2,)):
        state = state.but(**{"etcd-ca": generations})
        # The step `etcd` before it: members read their authorities at their start.
        member.end()
        member = Member(state)
        # Only another content is read anew; in which order the two are makes no difference, and is not looked at.
        brought(state, ALL, check=False)
        assert status(admin(2)) == 200
    return state


def what_does_not_fit_is_refused_before_anything_is_written(state):
    before = read(f"{PKI}/ca.crt")
    wrong = state.parameters()
    for entry in wrong["secrets"]:
        if entry["path"].endswith("/ca.key"):
            entry["content"] = read("/data/1/ca.key")
    _, failure = play(certificate_authorities, **wrong)
    assert failure.reason == "InvalidVariables" and "ca.key" in failure.message, failure.message
    _, failure = state.play(kubelet_client="\n".join(make_leaf_once(1, "ca", "/O=system:nodes/CN=system:node:h1")))
    assert failure.reason == "InvalidVariables" and "h1" in failure.message, failure.message
    assert read(f"{PKI}/ca.crt") == before


def a_client_that_is_not_known_is_told(state):
    state.next_client = "\n".join(make_leaf_once(1, "ca", "/CN=next-client"))
    _, failure = state.play(timeout_seconds=3)
    assert failure.reason == "CertificateNotServed" and "does not accept clients of the next authority" in failure.message, failure.message


since = time.monotonic()


def took(name):
    print(f"{name}: {time.monotonic() - since:.0f} s", flush=True)


the_signer_has_a_file_of_its_own()
took("signer")
state = the_kubernetes_authority_is_replaced()
took("ca")
state = the_front_proxys_authority_is_replaced(state)
took("front-proxy-ca")
state = the_service_account_key_is_replaced(state)
took("service-account key")
state = etcds_authority_is_replaced(state)
took("etcd-ca")
what_does_not_fit_is_refused_before_anything_is_written(state)
a_client_that_is_not_known_is_told(state)
