"""What every kind of a sequence has: names, metadata, and how a body is spoilt."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from tests.contract.normal import OWN_UIDS

Json: TypeAlias = dict[str, Any]

NAMES = ("a", "b", "c")
TEXTS = ("v", "w", "", "é", "1", "true", "x y")
_LABELS = ("x", "y", "team", "example.com/z")
_VALUES = ("1", "2", "", "a-b", "a b")
_FINALIZERS = ("x.io/a", "x.io/b", "foregroundDeletion", "orphan", "bad")
_WRONG: tuple[object, ...] = (None, 5, "", "odd text", [], {}, True, -1, ["a"], {"a": "b"}, 1.5, [None])


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind, and how its objects are drawn."""

    target: str
    """Of its collection, short as in ``tests.contract.api``."""
    api_version: str
    kind: str
    fields: Callable[[Random], Json]
    """Everything but metadata and status."""
    status: Callable[[Random], Json] | None = None
    fields_selected: tuple[str, ...] = ("metadata.name", "metadata.namespace", "spec.nothing")
    names: tuple[str, ...] = NAMES
    is_shared: bool = False
    """Whether sequences share one collection: then each looks at objects of its own names only, one at a time."""

    def body(self, random: Random, name: str) -> Json:
        """An object as a client sends it."""
        body: Json = {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}}
        body["metadata"] |= metadata(random)
        body |= self.fields(random)
        if self.target == "jobs" and not body["metadata"].get("labels"):
            # Without labels a real server writes at the next update even if nothing changes (DF7); ours does not.
            body["metadata"]["labels"] = {"team": "a"}
        if self.status is not None and random.random() < 0.1:
            body["status"] = self.status(random)
        if random.random() < 0.1:
            spoil(random, body)
        return body


def metadata(random: Random) -> Json:
    """Labels and the like, each in some of the cases."""
    drawn: Json = {}
    if random.random() < 0.4:
        drawn["labels"] = {random.choice(_LABELS): random.choice(_VALUES[:-1]) for _ in range(random.randint(0, 2))}
    if random.random() < 0.2:
        drawn["annotations"] = {random.choice(_LABELS): random.choice(TEXTS) for _ in range(random.randint(0, 2))}
    if random.random() < 0.2:
        drawn["finalizers"] = random.sample(_FINALIZERS[:2], random.randint(0, 2))
    if random.random() < 0.1:
        drawn["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}
            for uid in random.sample(OWN_UIDS, random.randint(0, 2))
        ]
    if random.random() < 0.03:
        drawn["generateName"] = "g-"
    if random.random() < 0.03:
        drawn["finalizers"] = random.choices(_FINALIZERS, k=2)
    if random.random() < 0.03:
        drawn["labels"] = {random.choice((*_LABELS, "a b")): random.choice(_VALUES)}
    return drawn


def spoil(random: Random, body: Json) -> None:
    """Put something of another type, or unknown, somewhere."""
    here: Any = body
    while True:
        if not isinstance(here, dict) or not here:
            return
        name = random.choice([one for one in here if one not in ("apiVersion", "kind")] or ["kind"])
        if isinstance(here[name], dict) and here[name] and random.random() < 0.6:
            here = here[name]
            continue
        if random.random() < 0.3:
            here["unknown"] = copy.deepcopy(random.choice(_WRONG))
        else:
            here[name] = copy.deepcopy(random.choice(_WRONG))
        return
