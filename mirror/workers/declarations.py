"""Who declares which worker: Secrets of our own, Secrets of others, ClusterProfiles. Pure.

A provider (``Provider``) reports each object that declares a worker as a ``Declaration``; ``Declarations`` holds all of
them and says which one counts for a name. Used by ``registry``. How they are read is in ``spec``, ``declared_secrets``
and ``cluster_profiles``; how they are watched in ``secret_provider`` and ``profile_provider``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from mirror.kube.objects import Object
from mirror.kube.resources import Resource
from mirror.workers.inventory import Declared, kept_labels
from mirror.workers.spec import WorkerSpec

MOST_NAMED = 3


class Key(NamedTuple):
    """Which object declares something."""

    rank: int
    """Of its provider, in the order of the settings."""
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The object that declares a worker: what its author looks at, and events are about."""

    resource: Resource
    found: Object

    def __str__(self) -> str:
        metadata = self.found.metadata
        return f"{self.resource.kind} {metadata.namespace}/{metadata.name}"


@dataclass(frozen=True, slots=True)
class Declaration:
    """A worker as one object declares it. Without ``spec`` it is of no use, and ``problem`` says why."""

    name: str
    """Of the worker; empty: it has none that could be used."""
    origin: Origin
    spec: WorkerSpec | None
    problem: str = ""
    remark: str = ""
    """What people should know of it beside problems."""
    is_own: bool = False
    """Whether it is a Secret that registers a worker (label ``jobmirror.io/worker``): we may write it."""
    makes_way: bool = False
    """It counts only where nothing else declares the worker (``gone_record.only_takes_back``)."""
    key: str = ""
    """Of another Secret's data: where the kubeconfig is, by the settings."""
    account: str = ""
    """Whose Secret of Open Cluster Management a ClusterProfile means, by the settings."""


def declared(holder: Declaration, *, is_misconfigured: bool, token_expires: datetime | None) -> Declared:
    """What is written down of a declaration, for who may not read it (``mirror worker list``)."""
    spec, by = holder.spec, str(holder.origin)
    if spec is None:
        return Declared(by=by, key=holder.key, account=holder.account)
    labels, more_labels = kept_labels(spec.labels)
    return Declared(
        by=by,
        capacity=spec.capacity,
        cordoned=spec.cordoned,
        draining=spec.draining,
        misconfigured=is_misconfigured,
        token_expires=f"{token_expires:%Y-%m-%dT%H:%M:%SZ}" if token_expires else "",
        labels=labels,
        more_labels=more_labels,
        key=holder.key,
        account=holder.account,
    )


def recorded(
    holder: Declaration | None, before: Declared | None, *, is_misconfigured: bool, token_expires: datetime | None
) -> Declared | None:
    """What `mirror worker list` shows of a worker whose declaration it does not look for.

    Args:
        holder: what declares it; None: nothing does any more, so that what was recorded ``before`` stays.
        before: what is recorded.
        is_misconfigured: something is wrong with its annotations.
        token_expires: when the token of its kubeconfig does.
    """
    if holder is None:
        return before
    if holder.is_own:
        return None
    return declared(holder, is_misconfigured=is_misconfigured, token_expires=token_expires)


Report = Callable[[Key, Declaration | None], None]
"""Takes what an object declares now; None: nothing any more."""


class Provider(Protocol):
    """Where declarations come from. It reports them to a ``Report`` that it was made with."""

    @property
    def title(self) -> str:
        """What it watches, for logs and names of tasks."""
        ...

    @property
    def refused_because(self) -> str:
        """Why it may not look, where it is not an outage; empty when it may."""
        ...

    @property
    def is_synced(self) -> bool:
        """Whether it has reported all that there is."""
        ...

    async def run(self) -> None:
        """Report, until cancelled."""
        ...

    async def wait_until_synced(self) -> None: ...

    async def wait_until_tried(self) -> None:
        """Until it is synced, or has failed to be."""
        ...

    def list_anew(self) -> None:
        """Take nothing that is known for granted (D2)."""
        ...


class Declarations:
    """All of them, by name: of several with one name the first counts, and the others are refused.

    First are the Secrets that register workers, then what is older: who can make objects in another namespace cannot
    take over the name of a worker that is there. A broken Secret of ours is first all the same; only what makes way is
    last. Nothing of this changes while an object of somebody else's works or not, so that names do not go to and fro.
    Invariant: ``_names`` holds exactly the keys of ``_known`` by name.
    """

    def __init__(self) -> None:
        self._known: dict[Key, Declaration] = {}
        self._names: dict[str, list[Key]] = {}

    def put(self, key: Key, declaration: Declaration | None) -> tuple[str, ...]:
        """Note what an object declares now; returns the names of workers that may be another one's since."""
        before = self._known.get(key)
        if before == declaration:
            return ()
        self._known.pop(key, None)
        if before is not None:
            keys = self._names[before.name]
            keys.remove(key)
            if not keys:
                del self._names[before.name]
        if declaration is not None:
            self._known[key] = declaration
            self._names.setdefault(declaration.name, []).append(key)
            self._names[declaration.name].sort(key=self._order)
        concerned = (before.name if before else "", declaration.name if declaration else "")
        return tuple(dict.fromkeys(name for name in concerned if name))

    def holder(self, name: str) -> Declaration | None:
        """The declaration that counts for a worker."""
        keys = self._names.get(name, ()) if name else ()
        return self._known[keys[0]] if keys else None

    def refused(self, name: str) -> list[Declaration]:
        """The others by this name; not the same object once more."""
        found: dict[str, Declaration] = {}
        for key in self._names.get(name, ()):
            one = self._known[key]
            found.setdefault(one.origin.found.metadata.uid, one)
        return list(found.values())[1:] if name else []

    def without_name(self) -> list[Declaration]:
        """Those that cannot be a worker, since none can have such a name."""
        return [self._known[key] for key in self._names.get("", ())]

    def names(self) -> Iterator[str]:
        return iter([name for name in self._names if name])

    def remark(self, name: str) -> str:
        """What people should know of a worker's declaration."""
        holder, refused = self.holder(name), self.refused(name)
        parts = [holder.remark] if holder is not None and holder.remark else []
        parts += [mistakes] if (mistakes := self.mistakes(name)) else []
        if refused:
            more = ", …" if len(refused) > MOST_NAMED else ""
            others = ", ".join(str(one.origin) for one in refused[:MOST_NAMED]) + more
            parts.append(f"its name is also declared by {others}, which is ignored")
        return "; ".join(parts)

    def mistakes(self, name: str) -> str:
        """Annotations of a worker's declaration that are probably misspelt."""
        holder = self.holder(name)
        return "; ".join(holder.spec.mistakes) if holder is not None and holder.spec is not None else ""

    def _order(self, key: Key) -> tuple[bool, bool, str, Key]:
        known = self._known[key]
        return known.makes_way, not known.is_own, known.origin.found.metadata.creation_timestamp or "", key
