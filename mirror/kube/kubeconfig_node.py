"""Reading a kubeconfig's mappings field by field, where every complaint names its field and quotes nothing.

``kubeconfig_cluster`` and ``kubeconfig_user`` know what may stand in the fields; this module only knows types.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from mirror.kube.errors import KubeError


class KubeconfigRefused(KubeError):
    """A kubeconfig that we will not use.

    ``field`` is a path such as ``users[0].user.exec``; neither it nor the texts quote what the kubeconfig holds (D18).
    """

    def __init__(self, field: str, problem: str, fix: str) -> None:
        super().__init__(field, problem, fix)
        self.field = field
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}; {self.fix}"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a kubeconfig may contain."""

    allow: Mapping[str, bool]
    """The names of ``workers.allow``."""
    trusted: bool = False
    """The operator's own file: everything that works is allowed, and any address."""

    def allows(self, name: str) -> bool:
        return self.trusted or self.allow.get(name, False)

    def require(self, name: str, at: str, problem: str, instead: str) -> None:
        """Refuse a field unless its name is allowed."""
        if not self.allows(name):
            raise KubeconfigRefused(at, problem, f"{instead}, or set workers.allow.{name}: true")


@dataclass(frozen=True, slots=True)
class Node:
    """One mapping and where it stands. An empty text, null and a missing key are the same, as for other clients."""

    path: str
    values: Mapping[str, object]

    @staticmethod
    def of(path: str, value: object) -> Node:
        if value is None:
            return Node(path, {})
        if not isinstance(value, Mapping):
            raise KubeconfigRefused(path or "kubeconfig", "is not a mapping", "write it as keys and values")
        return Node(path, value)

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        return self.values.get(key) not in (None, "", [], {}, False)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise KubeconfigRefused(self.at(key), "is not text", "write it as text, in quotes if need be")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise KubeconfigRefused(self.at(key), "is neither true nor false", "write true or false, without quotes")
        return value

    def data(self, key: str) -> bytes:
        """What is encoded there in base64; line ends within are ignored, as Go does."""
        text = self.text(key).replace("\n", "").replace("\r", "")
        try:
            return base64.b64decode(text.encode("ascii"), validate=True)
        except (binascii.Error, ValueError) as error:
            raise KubeconfigRefused(self.at(key), "is not base64", "encode the PEM with `base64 -w0`") from error

    def child(self, key: str) -> Node:
        return Node.of(self.at(key), self.values.get(key))

    def items(self, key: str) -> list[object]:
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise KubeconfigRefused(self.at(key), "is not a list", "write it as a list")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        found = []
        for index, item in enumerate(self.items(key)):
            if not isinstance(item, str):
                raise KubeconfigRefused(f"{self.at(key)}[{index}]", "is not text", "write it as text, in quotes")
            found.append(item)
        return tuple(found)

    def children(self, key: str) -> list[Node]:
        return [Node.of(f"{self.at(key)}[{index}]", item) for index, item in enumerate(self.items(key))]

    def only(self, known: frozenset[str]) -> None:
        """Refuse keys that we do not know: one may say who we are in a way that we would ignore."""
        for key in self.values:
            if key not in known:
                raise KubeconfigRefused(self.path, "has an unknown key", f"keep to {', '.join(sorted(known))}")
