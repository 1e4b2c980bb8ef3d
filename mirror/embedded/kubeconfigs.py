"""Kubeconfigs for users of an embedded control plane: everything inline, and readable by their owner alone."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml

from mirror.serving.x509 import KeyPair


def kubeconfig(
    server: str, *, authority: bytes, user: KeyPair | str, name: str = "embedded", namespace: str = ""
) -> str:
    """A kubeconfig as text.

    Args:
        server: the URL.
        authority: PEM of who has signed the server's certificate.
        user: a client certificate, or a bearer token.
        name: what cluster, user and context are called in it.
        namespace: where kubectl works unless told; empty: ``default``.
    """
    match user:
        case KeyPair():
            credentials = {
                "client-certificate-data": _encoded(user.certificate),
                "client-key-data": _encoded(user.key),
            }
        case str():
            credentials = {"token": user}
    context = {"cluster": name, "user": name, **({"namespace": namespace} if namespace else {})}
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": credentials}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    return str(yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False))


def merged(first: str, *others: str) -> str:
    """One kubeconfig of several, whose names differ; the current context is the first one's."""
    found = yaml.load(first, yaml.CSafeLoader)
    for text in others:
        more = yaml.load(text, yaml.CSafeLoader)
        for plural in ("clusters", "users", "contexts"):
            found[plural] += more[plural]
    return str(yaml.dump(found, Dumper=yaml.CSafeDumper, sort_keys=False))


def write(path: Path, text: str) -> None:
    """Put it where its readers look, at once and whole, with rights for the owner alone.

    Raises:
        OSError: it cannot be written there.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w") as file:
            file.write(text)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def url(host: str, port: int) -> str:
    """Where clients on this machine find what listens there."""
    shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"https://{shown}:{port}"


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
