"""A control plane whose authorities an authority of a company has issued, which no machine has: they are believed for themselves, and
replaced by others that it has issued. Everything but the kubelet is real."""

import http.client
import socket
import ssl

import authorities_world
from authorities_world import ADDRESS, ETCD_PKI, PKI, PORT, Member, make_leaf_once, openssl, read, wait

from ansible_collections.clusterwright.cluster.plugins.module_utils import api, etcd, issuers, kubeconfigs
from ansible_collections.clusterwright.cluster.plugins.module_utils.trust import believing
from ansible_collections.clusterwright.cluster.plugins.modules import apiserver_names, apiserver_ready
from machine_world import play

authorities_world.ISSUED.update((1, 2))
kubelet, member, state = authorities_world.build()


def status(generation):
    """How the API server answers a user that this generation has signed; who asks believes what the machine has."""
    context = believing(cafile=f"{PKI}/ca.crt")
    pair = make_leaf_once(generation, "ca", "/O=system:masters/CN=user")
    context.load_cert_chain(api.in_memory("\n".join(pair).encode()))
    connection = http.client.HTTPSConnection(ADDRESS, PORT, timeout=5, context=context)
    connection.request("GET", "/api/v1/namespaces/default")
    return connection.getresponse().status


def brought(found):
    result, failure = found.play()
    assert failure is None, f"{failure.reason}: {failure.message}"
    assert result["changed"]
    result, failure = found.play(check=True)
    assert failure is None and not result["changed"], (failure and failure.message, result)
    assert not kubelet.failure, kubelet.failure


def etcd_is_healthy():
    found = etcd.Etcd(ETCD_PKI, ["https://127.0.0.1:2379"])
    assert found.healthy_soon("https://127.0.0.1:2379"), found.said


def every_module_believes_what_only_programs_in_go_believe_by_themselves():
    try:
        with ssl.create_default_context(cafile=f"{PKI}/ca.crt").wrap_socket(socket.create_connection((ADDRESS, PORT)), server_hostname=ADDRESS):
            raise AssertionError("this version of Python asks for the authority above: no need to look further")
    except ssl.SSLCertVerificationError:
        pass
    etcd_is_healthy()
    result, failure = play(apiserver_ready, address=ADDRESS, port=PORT, timeout_seconds=30, version="", identity=None)
    assert failure is None, failure.message
    names = apiserver_names.served({"address": ADDRESS, "port": PORT})
    assert "kubernetes.default.svc" in names, names


def they_are_replaced_by_others_that_the_same_authority_has_issued(state):
    assert (status(1), status(2)) == (200, 401)
    both = state.but(ca=(1, 2), **{"front-proxy-ca": (1, 2)})
    both.next_client = "\n".join(make_leaf_once(2, "ca", "/CN=next-client"))
    brought(both)
    assert (status(1), status(2)) == (200, 200)
    sign = both.but(ca=(2, 1), **{"front-proxy-ca": (2, 1)})
    brought(sign)
    for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet"):
        assert issuers.is_from(api.client_pair(read(f"/etc/kubernetes/{name}.conf")), read("/data/2/ca.crt")), name
        assert len(kubeconfigs.authorities(read(f"/etc/kubernetes/{name}.conf"))) == 2, name
    only = sign.but(ca=(2,), **{"front-proxy-ca": (2,)})
    brought(only)
    wait(lambda: status(1) == 401, 90)
    assert status(2) == 200
    return only


def etcds_is_replaced(state):
    global member  # pylint: disable=global-statement
    for generations in ((1, 2), (2, 1), (2,)):
        state = state.but(**{"etcd-ca": generations})
        member.end()
        member = Member(state)
        brought(state)
        etcd_is_healthy()
        assert status(2) == 200


def nobody_else_of_the_company_is_let_in():
    """What the company's own authority has signed is no user of the cluster."""
    key = openssl("genrsa", "2048").decode()
    authorities_world.write("/data/stranger.key", key)
    authorities_world.write("/data/stranger.csr", openssl("req", "-new", "-key", "/data/stranger.key", "-subj", "/O=system:masters/CN=x").decode())
    company = authorities_world.COMPANY
    signed = openssl("x509", "-req", "-days", "30", "-in", "/data/stranger.csr", "-CA", f"{company}.crt", "-CAkey", f"{company}.key", "-CAcreateserial")
    context = believing(cafile=f"{PKI}/ca.crt")
    context.load_cert_chain(api.in_memory(signed + key.encode()))
    connection = http.client.HTTPSConnection(ADDRESS, PORT, timeout=5, context=context)
    connection.request("GET", "/api/v1/namespaces/default")
    assert connection.getresponse().status == 401


every_module_believes_what_only_programs_in_go_believe_by_themselves()
nobody_else_of_the_company_is_let_in()
etcds_is_replaced(they_are_replaced_by_others_that_the_same_authority_has_issued(state))
nobody_else_of_the_company_is_let_in()
