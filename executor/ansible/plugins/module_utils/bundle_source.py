# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Where the artifact bundle comes from: its address, whom to trust there, and who we are."""

from __future__ import annotations

import base64
import hashlib
import ssl
import urllib.error
import urllib.parse
import urllib.request

from ansible_collections.clusterwright.cluster.plugins.module_utils import proxies
from ansible_collections.clusterwright.cluster.plugins.module_utils.failure import StepFailure


# What the variable `artifacts_bundle` holds. The last two are not the source's, and say what is meant of the bundle.
FIELDS = {"url", "index_sha256", "ca", "username", "password", "token", "proxy", "catalogue", "lock", "components", "kube_version"}


def origin(url: str) -> tuple:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect, but takes our login to no other server, and leaves no HTTPS."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if req.type == "https" and not newurl.startswith("https://"):
            raise urllib.error.HTTPError(req.full_url, code, f"it leads away from HTTPS, to {newurl}", headers, fp)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and origin(newurl) != origin(req.full_url):
            request.remove_header("Authorization")
        return request


class Proxies(urllib.request.ProxyHandler):
    """Asks the machine's proxy, but for what its noProxy names; each redirect is looked at anew."""

    def __init__(self, proxy: dict) -> None:
        super().__init__(proxies.by_scheme(proxy))
        self._proxy = proxy

    def proxy_open(self, req, proxy, type):  # pylint: disable=redefined-builtin
        return None if proxies.is_direct(self._proxy, req.full_url) else super().proxy_open(req, proxy, type)


class Source:
    """Opens URLs of the bundle, or of upstream, as the variable `artifacts_bundle` says."""

    def __init__(self, options: dict) -> None:
        unknown = sorted(set(options) - FIELDS)
        self.url = (options.get("url") or "").rstrip("/")
        self.catalogue = options.get("catalogue") or {}
        self.lock = options.get("lock") or {}
        if unknown or bool(self.url) == bool(self.catalogue):
            problem = f"unknown fields {', '.join(unknown)}" if unknown else "both url and catalogue" if self.url else "no url"
            raise StepFailure(
                "InvalidVariables", f"bundle has {problem}: give the variable artifacts_bundle (fields {', '.join(sorted(FIELDS))})"
            )
        self.index_sha256 = (options.get("index_sha256") or "").lower()
        self._authorization = authorization(options, self.url)
        handlers = [Redirects(), urllib.request.HTTPSHandler(context=trust(options.get("ca") or ""))]
        if options.get("proxy"):
            handlers.append(Proxies(options["proxy"]))
        self._opener = urllib.request.build_opener(*handlers)

    def open(self, url: str, timeout: float = 30, headers: dict | None = None):
        """The answer is a stream with a status of 200."""
        request = urllib.request.Request(url, headers=headers or {})
        if self._authorization:
            request.add_header("Authorization", self._authorization)
        return self._opener.open(request, timeout=timeout)

    def check_index(self, content: bytes) -> None:
        """Refuses another index than the one that was promised: the digests of everything else are in it."""
        if not self.is_promised(content):
            got = hashlib.sha256(content).hexdigest()
            raise StepFailure(
                "DigestMismatch",
                f"{self.url}/index.json: expected sha256 {self.index_sha256} (spec.artifacts.indexSHA256), got {got}; nothing of"
                " the bundle was used: compare the two with the place where the bundle was made",
            )

    def is_promised(self, content: bytes) -> bool:
        """Whether this is the index that was promised, where one was."""
        return not self.index_sha256 or hashlib.sha256(content).hexdigest() == self.index_sha256

    def is_unverified(self) -> bool:
        """Whether programs and their digests come over the same open wire."""
        return self.url.startswith("http://") and not self.index_sha256

    def is_unlocked(self) -> bool:
        """Whether what upstream's servers say of their files' digests is believed, and nothing else."""
        return not self.url and not self.lock


def trust(ca: str) -> ssl.SSLContext:
    """The private CA alone where there is one, else those of the machine."""
    try:
        return ssl.create_default_context(cadata=ca or None)
    except (ssl.SSLError, ValueError) as error:
        raise StepFailure("InvalidCA", f"the CA of spec.artifacts.caRef is no PEM certificate: {error}") from error


def authorization(options: dict, url: str) -> str:
    token, username = options.get("token") or "", options.get("username") or ""
    if not token and not username:
        return ""
    if not url.startswith("https://"):
        raise StepFailure("InvalidVariables", f"{url}: a login is sent over HTTPS only")
    if token:
        return f"Bearer {token}"
    login = f"{username}:{options.get('password') or ''}".encode("utf-8")
    return "Basic " + base64.b64encode(login).decode("ascii")
