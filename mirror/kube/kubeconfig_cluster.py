"""A kubeconfig's cluster: where it is, and how its certificate is checked. Part of ``kubeconfig``."""

from __future__ import annotations

import ipaddress
import re
import ssl
from dataclasses import dataclass, field

from mirror.kube import addresses, tls
from mirror.kube.kubeconfig_node import KubeconfigRefused, Node, Policy

CONNECTION_KEYS = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority",
    "certificate-authority-data",
    "proxy-url",
)
"""Where a cluster is, and how it is known for itself; what they may hold, ``Policy`` decides."""
_KEYS = frozenset({*CONNECTION_KEYS, "disable-compression", "extensions"})
# Strict, and what matched is put together anew: two parsers that disagree about a URL's host are how checks are evaded.
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9.%-]*)?\]|[^\[\]/:?#@%\\\s]+)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~-]*)*)"
)
_HOST_NAME = re.compile(r"[A-Za-z0-9._:-]{1,253}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a cluster is. Of a file and its data only one is set."""

    server: str
    """Scheme, host, port and perhaps a path, without a slash at the end."""
    tls_server_name: str = ""
    verify: bool = True
    ca_pem: bytes = field(default=b"", repr=False)
    ca_file: str = ""
    proxy: str = ""
    compresses: bool = True
    """Whether long answers may come compressed (``disable-compression``)."""


def read_cluster(node: Node, policy: Policy) -> Cluster:
    """Read and judge it; raises ``KubeconfigRefused``."""
    if not policy.trusted:
        node.only(_KEYS)
    server = _read_url(node, "server", policy)
    if server.startswith("http://"):
        policy.require("http", node.at("server"), "is http, which anybody on the way can read", "use https")
    verify = not node.flag("insecure-skip-tls-verify")
    if not verify:
        at = node.at("insecure-skip-tls-verify")
        policy.require("insecureSkipTLSVerify", at, "turns off checking the server's certificate", "give its CA")
    ca_file, ca_pem = node.text("certificate-authority"), node.data("certificate-authority-data")
    if ca_file and not ca_pem:
        require_file(node, "certificate-authority", policy)
    if ca_pem:
        _check_authorities(node, ca_pem)
    if not verify and (ca_file or ca_pem):
        at = node.at("insecure-skip-tls-verify")
        raise KubeconfigRefused(at, "contradicts the certificate authority that is given", "remove it")
    name = node.text("tls-server-name")
    if name and not _HOST_NAME.fullmatch(name):
        raise KubeconfigRefused(node.at("tls-server-name"), "is not a host name", "write a host name")
    proxy, compresses = _read_proxy(node, policy), not node.flag("disable-compression")
    return Cluster(server, name, verify, ca_pem, "" if ca_pem else ca_file, proxy, compresses)


def require_file(node: Node, key: str, policy: Policy) -> None:
    """Refuse a path to a file of ours unless that is allowed; then it must be absolute, as a Secret has no folder."""
    problem = "is a path to a file in our own pod"
    policy.require("filePaths", node.at(key), problem, f"put the content in {node.at(key)}-data")
    if not node.text(key).startswith("/"):
        raise KubeconfigRefused(node.at(key), "is a relative path", "write an absolute path")


def _read_url(node: Node, key: str, policy: Policy) -> str:
    """A URL whose host may be connected to, in its plainest form."""
    text = node.text(key)
    if not text:
        raise KubeconfigRefused(node.at(key), "is missing", "write https://HOST:PORT")
    if "@" in text:
        raise KubeconfigRefused(node.at(key), "holds a user name or password", "remove everything up to the @")
    if "?" in text or "#" in text:
        raise KubeconfigRefused(node.at(key), "has a query or a fragment", "remove everything from the ? or # on")
    match = _URL.fullmatch(text)
    if match is None:
        problem = "is not a URL that we can read" if "://" in text else "has no scheme"
        raise KubeconfigRefused(node.at(key), problem, "write https://HOST:PORT")
    scheme, host, port, path = match["scheme"].lower(), match["host"].strip("[]"), match["port"], match["path"]
    if scheme not in ("http", "https"):
        raise KubeconfigRefused(node.at(key), "is neither https nor http", "write https://HOST:PORT")
    if port is not None and not 0 < int(port) < 65536:
        raise KubeconfigRefused(node.at(key), "has a port that does not exist", "use a port from 1 to 65535")
    if any(part in ("", ".", "..") for part in path.rstrip("/").split("/")[1:]):
        raise KubeconfigRefused(node.at(key), "has a path with empty, . or .. parts", "write the path out")
    if not policy.trusted:
        _judge(node.at(key), host, policy)
    if ":" in host:
        host = f"[{_canonical(host)}]"
    return f"{scheme}://{host}{f':{int(port)}' if port else ''}{path.rstrip('/')}"


def _judge(at: str, host: str, policy: Policy) -> None:
    why = addresses.judge_host(host)
    if why == addresses.LOOPBACK:
        policy.require(
            "loopback",
            at,
            "is a loopback address, unreachable from the manager's pod",
            "use an address that our pod can reach",
        )
    elif why is not None:
        raise KubeconfigRefused(at, f"is not an allowed address: {why}", "use the API server's own address")


def _canonical(host: str) -> str:
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError:
        return host


def _check_authorities(node: Node, ca_pem: bytes) -> None:
    try:
        tls.load_authorities(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ca_pem)
    except tls.BadCertificate as error:
        at = node.at("certificate-authority-data")
        raise KubeconfigRefused(at, str(error), "encode a PEM certificate with `base64 -w0`") from error


def _read_proxy(node: Node, policy: Policy) -> str:
    if not node.text("proxy-url"):
        return ""
    if policy.trusted:
        return node.text("proxy-url")
    policy.require("proxyURL", node.at("proxy-url"), "sends our requests through another server", "remove it")
    return _read_url(node, "proxy-url", policy)
