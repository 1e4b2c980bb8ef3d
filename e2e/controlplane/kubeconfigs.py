"""Kubeconfigs as text: written for the users of a control plane, and read by our own small client.

Everything is inline, so that a file can be moved, mounted or put into a Secret. Not here: who may do what.
"""

from __future__ import annotations

import base64
import functools
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mirror.serving.x509 import KeyPair


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one API server as one user."""

    server: str
    headers: Mapping[str, str]
    tls: ssl.SSLContext | None


def write_kubeconfig(path: Path, server: str, authority: bytes, user: KeyPair | str) -> Path:
    """Write a kubeconfig for a user who has a client certificate, or a token (text), and return its path."""
    match user:
        case KeyPair():
            credentials = {
                "client-certificate-data": _encode(user.certificate),
                "client-key-data": _encode(user.key),
            }
        case str():
            credentials = {"token": user}
    cluster = {"server": server, "certificate-authority-data": _encode(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "user", "user": credentials}],
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
        "current-context": "context",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def read_kubeconfig(path: Path) -> Access:
    """How the file's current context reaches its server. Knows inline data, files, and tokens; no exec plugins."""
    config = _parsed(path)
    context = _named(config, "contexts", config["current-context"])["context"]
    cluster = _named(config, "clusters", context["cluster"])["cluster"]
    user = _named(config, "users", context["user"])["user"]
    headers = {"authorization": f"Bearer {user['token']}"} if user.get("token") else {}
    server = cluster["server"].rstrip("/")
    tls = None
    if server.startswith("https:"):
        tls = _context(
            _content(path, cluster, "certificate-authority"),
            _content(path, user, "client-certificate"),
            _content(path, user, "client-key"),
        )
    return Access(server, headers, tls)


def authority_of(path: Path) -> bytes:
    """The certificates, PEM, by which the server of the current context is known."""
    config = _parsed(path)
    context = _named(config, "contexts", config["current-context"])["context"]
    cluster = _named(config, "clusters", context["cluster"])["cluster"]
    return _content(path, cluster, "certificate-authority") or b""


def _parsed(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    return found


@functools.lru_cache(maxsize=256)
def _context(authority: bytes | None, certificate: bytes | None, key: bytes | None) -> ssl.SSLContext:
    """Made once for each identity: every test opens several clients, and a context costs more than a request."""
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    _present_certificate(tls, certificate, key)
    return tls


def _present_certificate(tls: ssl.SSLContext, certificate: bytes | None, key: bytes | None) -> None:
    if certificate is None or key is None:
        return
    with tempfile.NamedTemporaryFile() as both:  # ssl reads certificates from files only
        both.write(certificate + b"\n" + key)
        both.flush()
        tls.load_cert_chain(both.name)


def _named(config: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    return next(entry for entry in config[section] if entry["name"] == name)


def _content(path: Path, holder: dict[str, Any], field: str) -> bytes | None:
    if data := holder.get(f"{field}-data"):
        return base64.b64decode(data)
    if name := holder.get(field):
        return path.parent.joinpath(str(name)).read_bytes()
    return None


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
