# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Proxies on this machine's way out, as C(machine_settings.proxy) has them: httpProxy, httpsProxy, and noProxy, what is reached
without them."""

from __future__ import annotations

import ipaddress
import urllib.parse

from ansible_collections.clusterwright.cluster.plugins.module_utils import distribution_packages, files


APT = "/etc/apt/apt.conf.d/90clusterwright-proxy"


def is_direct(proxy: dict, url: str) -> bool:
    """Whether this URL is reached without a proxy."""
    host = urllib.parse.urlsplit(url).hostname or ""
    return any(covers(entry, host) for entry in proxy.get("noProxy", []))


def by_scheme(proxy: dict) -> dict:
    """The proxy of each scheme, as urllib's ProxyHandler takes it."""
    return {scheme: proxy[field] for scheme, field in (("http", "httpProxy"), ("https", "httpsProxy")) if proxy.get(field)}


def covers(entry: str, host: str) -> bool:
    """Whether an entry of noProxy is about this host: it is its name or address, a domain or network that it is in, or C(*)."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        name = entry.removeprefix("*").removeprefix(".").lower()
        return host.lower() == name or host.lower().endswith("." + name)


def environment(proxy: dict) -> dict:
    """For programs that take it from their environment. Of a proxy for https alone apt's http knows nothing."""
    if not proxy:
        return {}
    given = {name: proxy[field] for name, field in (("http_proxy", "httpProxy"), ("https_proxy", "httpsProxy")) if proxy.get(field)}
    return {**given, "no_proxy": ",".join(proxy.get("noProxy", []))}


def apt(proxy: dict) -> str:
    """The configuration of apt; of noProxy it knows names and addresses alone, neither domains nor networks."""
    lines = []
    for scheme, field in (("http", "httpProxy"), ("https", "httpsProxy")):
        if not proxy.get(field):
            continue
        lines.append(f'Acquire::{scheme}::Proxy "{proxy[field]}";')
        hosts = [entry for entry in proxy.get("noProxy", []) if not entry.startswith((".", "*")) and "/" not in entry]
        lines += [f'Acquire::{scheme}::Proxy::{host} "DIRECT";' for host in hosts]
    return "".join(f"{line}\n" for line in ["// Written by clusterwright.", *lines]) if lines else ""


def apply(proxy: dict, check: bool) -> list:
    """Lets apt use it; without any apt is as it was. Another package manager is given it in its environment, for each call of ours: its
    own configuration knows of no hosts that are reached without. What changed."""
    content = apt(proxy) if distribution_packages.has_apt() else ""
    if content:
        return [APT] if files.write(APT, content, 0o644, check) else []
    return [APT] if files.remove(APT, check) else []
