# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Whom the modules believe: what the authorities of a cluster sign, as programs in Go believe it."""

from __future__ import annotations

import ssl

# OpenSSL's X509_V_FLAG_PARTIAL_CHAIN, which Python has a name for since 3.10.
PARTIAL_CHAIN = 0x80000


def believing(cafile: str | None = None, cadata: str | None = None) -> ssl.SSLContext:
    """A client that believes these authorities, also where others stand above them: an owner's own may have been issued by another one."""
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    context.verify_flags |= PARTIAL_CHAIN
    # What a client in Go does not ask of a certificate is not asked here.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
