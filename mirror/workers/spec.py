"""What a Secret, or another declaration, says about a worker: pure reading, every problem with its field.

The Secrets that register workers are read here (docs/workers.md); ``declared_secrets`` and ``cluster_profiles`` read
what else declares them, with the same annotations.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mirror.kinds.own_annotations import wrong_names
from mirror.kube.connect import MANAGEMENT
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.drains import DRAINS
from mirror.model.text import clean

RESERVED_NAMES = (MANAGEMENT,)
OF_WORKERS = (
    names.CORDONED,
    names.DRAIN,
    names.GONE,
    names.CAPACITY,
    names.WEIGHT,
    names.NAMESPACES,
    names.NAMESPACE_PREFIX,
)
"""Annotations that mean something on what declares a worker."""
SECRET_SELECTOR = f"{names.WORKER}=true"
_PREFIX = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_GLOB = re.compile(r"[a-z0-9*?\[\]!-]{1,63}")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a worker's Secret: where, what, and how to mend it."""

    field: str
    text: str
    fix: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (f"{self.field}: {self.text}", self.fix)))


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """A worker as its Secret describes it. ``problems`` are those of annotations: they stop new Jobs, nothing else."""

    name: str
    uid: str
    kubeconfig: bytes
    labels: tuple[tuple[str, str], ...] = ()
    cordoned: bool = False
    drain: str = ""
    """How it is emptied (``model.drains``); empty: it is not. What is not understood keeps new Jobs away."""
    is_gone: bool = False
    """Somebody says that nothing runs there any more (D14)."""
    capacity: int | None = None
    weight: float = 1.0
    namespaces: tuple[str, ...] = ()
    namespace_prefix: str = ""
    problems: tuple[Problem, ...] = ()
    mistakes: tuple[str, ...] = ()
    """Names of annotations that look like ours and mean nothing here: most likely misspelt. They stop nothing."""
    refused: Problem | None = None
    """Why there is no kubeconfig to connect with."""

    @property
    def draining(self) -> bool:
        return bool(self.drain)

    def problems_with(self, prefix_in_use: str) -> tuple[Problem, ...]:
        """The same, with what is wrong while mirrors live under another prefix."""
        wanted = self.namespace_prefix
        if wanted == prefix_in_use:
            return self.problems
        text = (
            f"is {wanted or 'not set'}, but there are mirrors in namespaces with prefix {prefix_in_use or 'none'}; "
            "it takes effect once they are gone, or set it back"
        )
        return (*self.problems, Problem(f"metadata.annotations[{names.NAMESPACE_PREFIX}]", text))

    @property
    def access(self) -> tuple[bytes, str, Problem | None]:
        """What a connection depends on."""
        return self.kubeconfig, self.namespace_prefix, self.refused


class BadSecret(ValueError):
    """The Secret holds no usable kubeconfig at all."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read_kubeconfig(secret: Object, key: str = names.KUBECONFIG_KEY) -> bytes:
    """The kubeconfig's bytes.

    Raises:
        BadSecret: the key is missing or is not base64.
    """
    data = secret.data_dict()
    raw = data.get(key)
    if not isinstance(raw, str) or not raw:
        others = ", ".join(clean(other, longest=60) for other in sorted(data) if other != key)[:200]
        what = f"is missing (found: {others})" if others else "is missing"
        raise BadSecret(Problem(f"data.{key}", what, "put the worker's kubeconfig there"))
    try:
        return base64.b64decode(raw, validate=True)
    except ValueError:  # of other characters than ASCII, too
        raise BadSecret(Problem(f"data.{key}", "is not base64", "encode the kubeconfig, or use stringData")) from None


def read_spec(secret: Object) -> WorkerSpec:
    """Read a Secret that registers a worker.

    Raises:
        BadSecret: there is no kubeconfig in it.
    """
    name = secret.metadata.name
    check_name(name)
    return spec_of(secret, name=name, kubeconfig=read_kubeconfig(secret), labels=secret.labels)


def check_name(name: str) -> None:
    """Raises BadSecret for a name that no worker may have."""
    if name in RESERVED_NAMES:
        raise BadSecret(Problem("metadata.name", f"{name} means the management cluster everywhere; take another name"))


def spec_of(
    found: Object, *, name: str, kubeconfig: bytes, labels: Mapping[str, str], refused: Problem | None = None
) -> WorkerSpec:
    """A worker as an object declares it: by its annotations and its uid, and by these labels without ours.

    ``refused``: what is wrong where there is no kubeconfig.
    """
    reading = _Reading(found.annotations)
    own = {key: value for key, value in labels.items() if not key.startswith(names.PREFIX)}
    return WorkerSpec(
        name=name,
        uid=found.metadata.uid,
        kubeconfig=kubeconfig,
        labels=tuple(sorted((own | {"name": name}).items())),
        cordoned=reading.boolean(names.CORDONED),
        drain=reading.choice(names.DRAIN, DRAINS),
        is_gone=reading.boolean(names.GONE),
        capacity=reading.whole_number(names.CAPACITY),
        weight=reading.positive(names.WEIGHT),
        namespaces=reading.globs(names.NAMESPACES),
        namespace_prefix=reading.prefix(names.NAMESPACE_PREFIX),
        problems=tuple(reading.problems),
        mistakes=wrong_names(found.annotations, OF_WORKERS, others=(names.FOR_CLUSTER_PROFILES,)),
        refused=refused,
    )


class _Reading:
    """Reads annotations one by one and notes what is wrong with them."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations
        self.problems: list[Problem] = []

    def _wrong(self, key: str, wanted: str) -> None:
        found = self._annotations[key][:40]
        self.problems.append(Problem(f"metadata.annotations[{key}]", f"expected {wanted}, got {found!r}"))

    def boolean(self, key: str) -> bool:
        text = self._annotations.get(key, "").strip().lower()
        if text not in ("", "true", "false"):
            self._wrong(key, "true or false")
        return text == "true"

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        text = self._annotations.get(key, "").strip()
        if text and text not in allowed:
            self._wrong(key, " or ".join(allowed))
        return text

    def whole_number(self, key: str) -> int | None:
        text = self._annotations.get(key, "").strip()
        if not text:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            self._wrong(key, "a whole number from 0 up")
            return None
        return int(text)

    def positive(self, key: str) -> float:
        text = self._annotations.get(key, "").strip()
        if not text:
            return 1.0
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= 1_000_000:
            self._wrong(key, "a number above 0")
            return 1.0
        return value

    def globs(self, key: str) -> tuple[str, ...]:
        text = self._annotations.get(key, "")
        globs = tuple(part.strip() for part in text.split(",") if part.strip())
        if any(not _GLOB.fullmatch(glob) for glob in globs) or (key in self._annotations and not globs):
            self._wrong(key, "namespace names or globs, comma-separated")
        return globs

    def prefix(self, key: str) -> str:
        text = self._annotations.get(key, "").strip()
        if text and not _PREFIX.fullmatch(text):
            self._wrong(key, "lower-case letters, digits and '-', at most 41 of them")
        return text
