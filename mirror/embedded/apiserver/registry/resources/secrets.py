"""Secrets: their types and what each needs, and whether a TLS certificate belongs to its key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from types import MappingProxyType

from mirror.batch.quoting import json_text
from mirror.batch.syntax import config_key_problems
from mirror.batch.violations import IMMUTABLE, Violation, invalid, invalid_texts, required, too_long
from mirror.embedded.apiserver.apimachinery.decoding.syntax import complaint
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import CORE_REFUSAL, Builtin
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.registry.resources.bytes64 import canonical, decoded, encoded, length
from mirror.embedded.apiserver.registry.resources.configmaps import LARGEST, check_immutable

OPAQUE, TLS = "Opaque", "kubernetes.io/tls"
TOKEN = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
_BASIC_AUTH, _SSH_AUTH = "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth"
_DOCKER = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_REDACTED = json_text("<secret contents redacted>").replace("\\u003c", "<").replace("\\u003e", ">")


class Secrets(Builtin):
    """Bytes under keys, of a type that never changes."""

    struct = "Secret"
    selectable = MappingProxyType({"type": lambda body: str(body.get("type", ""))})
    selector_refusal = CORE_REFUSAL
    columns = (
        printers.NAME,
        Column("Type", description=TEXTS["SECRET_TYPE"]),
        Column("Data", description=TEXTS["SECRET_DATA"]),
        printers.AGE,
    )

    def decode(self, body: Json) -> Json:
        found = super().decode(body)
        if "data" in found:
            found["data"] = {key: canonical(text) for key, text in found["data"].items()}
        texts = found.pop("stringData", None)
        if texts:
            data = {key: encoded(text.encode("utf-8", "surrogatepass")) for key, text in texts.items()}
            found["data"] = found.get("data", {}) | data
        return found

    def default(self, body: Json, context: Context) -> None:
        if not body.get("type"):
            body["type"] = OPAQUE

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        data = body.get("data", {})
        for key in data:
            yield from invalid_texts(f"data[{key}]", key, config_key_problems(key))
        if sum(map(length, data.values())) > LARGEST:
            yield too_long("data", LARGEST)
        yield from _check_type(body.get("type", ""), data, body["metadata"].get("annotations", {}))

    def check_change(self, new: Json, old: Json, context: Context) -> Iterator[Violation]:
        if new.get("type", "") != old.get("type", ""):
            yield invalid("type", json_text(new.get("type", "")), IMMUTABLE)
        yield from check_immutable(new, old, ("data",))

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        if new.get("type") != TLS:
            return ()
        data = new.get("data", {})
        problem = mismatch(decoded(data.get("tls.crt", "")), decoded(data.get("tls.key", "")))
        return (problem,) if problem else ()

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [body["metadata"]["name"], body.get("type", ""), len(body.get("data", {})), printers.age(body, now)]


def _check_type(name: str, data: dict[str, str], annotations: dict[str, str]) -> Iterator[Violation]:
    if name == TOKEN:
        if not annotations.get(ACCOUNT_NAME):
            yield required(f"metadata.annotations[{ACCOUNT_NAME}]")
    elif name in _DOCKER:
        key = _DOCKER[name]
        if key not in data:
            yield required(f"data[{key}]")
        elif problem := _object_problem(decoded(data[key])):
            yield invalid(f"data[{key}]", _REDACTED, problem)
    elif name == _BASIC_AUTH:
        if "username" not in data and "password" not in data:
            yield required("data[username]")
            yield required("data[password]")
    elif name == _SSH_AUTH:
        if not data.get("ssh-privatekey"):
            yield required("data[ssh-privatekey]")
    elif name == TLS:
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                yield required(f"data[{key}]")


def _object_problem(data: bytes) -> str:
    """Why these bytes are no JSON object (or null), as Go's decoder says it."""
    # At the end of a text the decoder goes on as if a space followed.
    if problem := complaint(data + b" "):
        return problem
    first = data.lstrip()[:1]
    if first in (b"{", b"n"):
        return ""
    what = {b'"': "string", b"[": "array", b"t": "bool", b"f": "bool"}.get(first, "number")
    return f"json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"


def kind() -> Kind:
    """``v1`` ``secrets``."""
    return Kind("", "v1", "Secret", "secrets", Secrets(), singular="secret")


# Whether a certificate and a private key in PEM belong together, for a warning about Secrets of type TLS.

_PREFIX = "tls: "


def mismatch(certificate: bytes, key: bytes) -> str:
    """What is wrong with the pair, in the words of Go's ``tls.X509KeyPair``; empty if nothing is."""
    # Needed by hardly any request, and slow to import.
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    if b"-----BEGIN " not in certificate:
        return f"{_PREFIX}failed to find any PEM data in certificate input"
    if b"-----BEGIN CERTIFICATE-----" not in certificate:
        told = "failed to find certificate PEM data in certificate input, but did find a private key"
        return f"{_PREFIX}{told}; PEM inputs may have been switched"
    if b"-----BEGIN " not in key:
        return f"{_PREFIX}failed to find any PEM data in key input"
    if b"PRIVATE KEY-----" not in key:
        return f"{_PREFIX}found a certificate rather than a key in the PEM for the private key"
    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return f"{_PREFIX}failed to parse private key"
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if type(private.public_key()) is not type(public):
        return f"{_PREFIX}private key type does not match public key type"
    if private.public_key().public_bytes(*form) != public.public_bytes(*form):
        return f"{_PREFIX}private key does not match public key"
    return ""
