"""What the API refuses in names and addresses of a pod: DNS, host aliases, ports of the node (C31)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from mirror.batch.quoting import json_texts
from mirror.batch.syntax import search_domain_problems, size, subdomain_problems
from mirror.batch.violations import Violation, invalid, invalid_text, invalid_texts, required
from mirror.embedded.apiserver.apimachinery.canonical import Json

_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9])")
"""Leading zeros of the decimal parts of an address, which older parsers ignored."""
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048


def check_dns(field: str, pod: Json) -> Iterator[Violation]:
    """Name servers and search domains; without a policy there must be some."""
    config: Json | None = pod.get("dnsConfig")
    servers: Sequence[str] = (config or {}).get("nameservers", ())
    if pod["dnsPolicy"] == "None" and config is None:
        yield required(field, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if pod["dnsPolicy"] == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{field}.nameservers", detail)
        return
    if len(servers) > _MOST_SERVERS:
        detail = f"must not have more than {_MOST_SERVERS} nameservers"
        yield invalid(f"{field}.nameservers", json_texts(servers), detail)
    for position, server in enumerate(servers):
        yield from check_address(f"{field}.nameservers[{position}]", server)
    yield from _check_searches(f"{field}.searches", (config or {}).get("searches", ()))
    for position, option in enumerate((config or {}).get("options", ())):
        if not option.get("name"):
            yield required(f"{field}.options[{position}]", "must not be empty")


def check_host_aliases(field: str, pod: Json) -> Iterator[Violation]:
    """Lines for the hosts file."""
    for position, alias in enumerate(pod.get("hostAliases", ())):
        yield from check_address(f"{field}[{position}].ip", alias["ip"])
        for number, name in enumerate(alias.get("hostnames", ())):
            yield from invalid_texts(f"{field}[{position}].hostnames[{number}]", name, subdomain_problems(name))


def check_host_ports(field: str, pod: Json) -> Iterator[Violation]:
    """On the network of the node, a port of a container is the node's."""
    for position, container in enumerate(pod.get("containers") or ()):
        for number, port in enumerate(container.get("ports", ())):
            host_port = port.get("hostPort", 0)
            if host_port and host_port != port["containerPort"]:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{field}[{position}].ports[{number}].hostPort", host_port, detail)


def _check_searches(field: str, searches: Sequence[str]) -> Iterator[Violation]:
    if len(searches) > _MOST_SEARCHES:
        yield invalid(field, json_texts(searches), f"must not have more than {_MOST_SEARCHES} search paths")
    if size(" ".join(searches)) > _LONGEST_SEARCHES:
        detail = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield invalid(field, json_texts(searches), detail)
    for position, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            yield from invalid_texts(f"{field}[{position}]", name, search_domain_problems(name))


def check_address(field: str, address: str) -> Iterator[Violation]:
    """An IP address, written without leading zeros and not as one of the other family."""
    if "%" not in address:
        plain = _ZEROS.sub("", address) if "." in address else address
        try:
            found = ipaddress.ip_address(plain)
        except ValueError:
            pass
        else:
            if plain != address:
                yield invalid_text(field, address, "must not have leading 0s")
            elif isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
                yield invalid_text(field, address, "must not be an IPv4-mapped IPv6 address")
            return
    yield invalid_text(field, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
