# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whether a certificate was signed by an authority. Two authorities may have the same name, so the signature decides: a TLS handshake in
memory verifies it, since the standard library has nothing else that does."""

from __future__ import annotations

import ssl

from ansible_collections.clusterwright.cluster.plugins.module_utils.api import in_memory
from ansible_collections.clusterwright.cluster.plugins.module_utils.certificates import BLOCK

# OpenSSL's X509_V_FLAG_PARTIAL_CHAIN and X509_V_FLAG_NO_CHECK_TIME: who signed it is asked, and not whether it has ended.
ONLY_SIGNATURE = 0x80000 | 0x200000
# A handshake takes three.
TURNS = 10


def contexts(pair: str, authority: str, is_client: bool) -> tuple:
    """(client's, server's): the one that is shown the pair verifies it. A client's certificate is verified as such, a server's as that."""
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    for context in (client, server):
        context.load_cert_chain(in_memory(pair.encode("ascii")))
    verifier = server if is_client else client
    verifier.verify_mode = ssl.CERT_REQUIRED
    verifier.load_verify_locations(cadata=authority)
    verifier.verify_flags |= ONLY_SIGNATURE
    return client, server


def is_accepted(pair: str, authority: str, is_client: bool) -> bool:
    client, server = contexts(pair, authority, is_client)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    waiting = [client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)]
    for _turn in range(TURNS):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return True
    return False


def is_from(pair: str, authorities: str) -> bool:
    """Whether the certificate in `pair`, PEM with its key, was signed by the first one in `authorities`. A pair that does not match is from
    nobody."""
    signer = BLOCK.search(authorities)
    if not signer:
        return False
    for is_client in (True, False):
        try:
            if is_accepted(pair, signer.group(0), is_client):
                return True
        except (ssl.SSLError, ValueError):
            continue
    return False
