"""What a kubeconfig says, and whether we may use it: its bytes go in, a checked value comes out. No I/O.

Used for workers' Secrets, and by ``auth`` for the management cluster's own file. A worker's kubeconfig is checked
before anything else sees it, because whoever may write the Secret could otherwise run commands in our pod, have our
files sent elsewhere, or make us call a cloud's metadata service. Connecting is ``auth``'s and ``connect``'s work.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mirror.kube.kubeconfig_cluster import Cluster, read_cluster
from mirror.kube.kubeconfig_node import KubeconfigRefused, Node, Policy
from mirror.kube.kubeconfig_user import ExecPlugin, User, read_user
from mirror.settings.strict_yaml import read_yaml

__all__ = [
    "Cluster",
    "ExecPlugin",
    "Kubeconfig",
    "KubeconfigRefused",
    "Policy",
    "User",
    "check_kubeconfig",
    "read_document",
]

_MOST_BYTES = 2**20
_REFUSED_YAML = (
    "anchors and aliases",
    "tags",
    "merge keys",
    "nested deeper",
    "keys and values",
    "a key must be text",
    "stands there twice",
)
_FIELD = re.compile(r"[a-zA-Z-]{1,30}((\.[a-zA-Z-]{1,30})|\[[0-9]+\]){0,6}")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The current context of a kubeconfig, checked. Its repr shows no secret."""

    cluster: Cluster
    user: User

    @property
    def server(self) -> str:
        return self.cluster.server


def check_kubeconfig(raw: bytes, allow: Mapping[str, bool]) -> Kubeconfig:
    """Check a worker's kubeconfig; only its current context counts.

    Args:
        raw: the file as it is in the Secret.
        allow: the opt-ins of ``workers.allow`` by name.

    Raises:
        KubeconfigRefused: it must not be used, or cannot be; the text names the field and quotes no content.
    """
    if len(raw) > _MOST_BYTES:
        raise KubeconfigRefused("kubeconfig", "is larger than 1 MiB", "leave out all contexts but one")
    complaints: list[tuple[str, str]] = []
    document = read_yaml(raw, lambda path, problem: complaints.append((path, problem)))
    for path, problem in complaints:
        raise _yaml_refused(path, problem)
    if isinstance(document, str) and _is_encoded(raw):
        raise KubeconfigRefused("kubeconfig", "is base64, encoded twice", "encode it once, or use stringData")
    return read_document(document, Policy(allow))


def read_document(document: object, policy: Policy) -> Kubeconfig:
    """As ``check_kubeconfig``, for a document that has been parsed already."""
    root = Node.of("", document)
    if not root.values:
        raise KubeconfigRefused("kubeconfig", "is empty", "put a kubeconfig there")
    if root.text("kind") not in ("", "Config"):
        raise KubeconfigRefused("kind", "is not Config", "put a kubeconfig there, not another object")
    name = root.text("current-context")
    if not name:
        raise KubeconfigRefused("current-context", "is missing", "name the context to use")
    context = _named(root, "contexts", name, asked_by="current-context")
    cluster = read_cluster(_named_of(root, "clusters", context, "cluster"), policy)
    if policy.trusted and not context.text("user"):
        return Kubeconfig(cluster, User())
    return Kubeconfig(cluster, read_user(_named_of(root, "users", context, "user"), cluster, policy))


def _named_of(root: Node, plural: str, context: Node, key: str) -> Node:
    name = context.text(key)
    if not name:
        raise KubeconfigRefused(context.at(key), "is missing", f"name one of {plural}")
    return _named(root, plural, name, asked_by=context.at(key))


def _named(root: Node, plural: str, name: str, *, asked_by: str) -> Node:
    """The content of the one entry of that name."""
    entries = [entry for entry in root.children(plural) if entry.text("name") == name]
    if not entries:
        raise KubeconfigRefused(asked_by, f"names nothing in {plural}", f"name an entry of {plural}, or add it")
    if len(entries) > 1:
        raise KubeconfigRefused(entries[1].at("name"), "stands there twice", "remove one of both")
    return entries[0].child(plural.removesuffix("s"))


def _is_encoded(raw: bytes) -> bool:
    """Whether this is the base64 of what may be a kubeconfig."""
    try:
        return b"apiVersion" in base64.b64decode(b"".join(raw.split()), validate=True)
    except binascii.Error:
        return False


def _yaml_refused(path: str, problem: str) -> KubeconfigRefused:
    """The reader's complaint in words that quote nothing: a tag or a key may be a secret that slipped."""
    field = path if _FIELD.fullmatch(path) else "kubeconfig"
    line = re.search(r"line [0-9]+", problem)
    where = f" ({line[0]})" if line else ""
    for known in _REFUSED_YAML:
        if known in problem:
            return KubeconfigRefused(field, f"uses YAML that is refused: {known}{where}", "write it out plainly")
    return KubeconfigRefused(field, f"is not YAML{where}", "put a kubeconfig there, as UTF-8 text")
