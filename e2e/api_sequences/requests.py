"""Sequences of requests, drawn from a seed: a few clients at work on a few objects of one kind.

A sequence is steps of the scripts of ``tests.contract``, so that what is found can become a case there. It ends by
listing everything, and with a watch of all that has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias
from urllib.parse import quote

from e2e.api_sequences import definitions, users
from e2e.api_sequences.cluster_objects import CLUSTER_KINDS
from e2e.api_sequences.kind import NAMES, Kind, metadata, spoil
from e2e.api_sequences.objects import KINDS
from e2e.api_sequences.subresources import MORE
from tests.contract.api import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC
from tests.contract.script import REFERENCE

Json: TypeAlias = dict[str, Any]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_MANAGERS = ("one", "two")
_FEWEST, _MOST = 2, 10
_WRITES = ("POST", "PUT", "PATCH")
Written: TypeAlias = tuple[int, ...]
"""Positions of earlier steps that answered with an object."""


@dataclass(frozen=True, slots=True)
class History:
    """A number, for finding it again, and its steps."""

    number: int
    steps: tuple[Json, ...]

    def without(self, position: int) -> History | None:
        """The same without one step; None if a later one refers to it."""
        later = self.steps[position + 1 :]
        if any(position in references(step) for step in later):
            return None
        return replace(self, steps=(*self.steps[:position], *(_renumbered(step, position) for step in later)))

    def with_step(self, position: int, step: Json) -> History:
        """The same with another step in its place."""
        return replace(self, steps=(*self.steps[:position], step, *self.steps[position + 1 :]))


def history(seed: int, number: int) -> History:
    """The sequence of this number; depends on nothing else."""
    random = Random(f"{seed}/{number}")
    draws = random.choices((_of_one_kind, definitions.steps, users.steps), (24, 1, 2))[0]
    return History(number, tuple(draws(random)))


def _of_one_kind(random: Random) -> list[Json]:
    kind = random.choice(KINDS + CLUSTER_KINDS)
    # The version of now, for the watch in the end.
    steps: list[Json] = [{"ask": f"GET {kind.target}?limit=1", "pick": []}, _create(random, kind, kind.names[0], ())]
    names = (kind.names[0],) * 4 + kind.names[: random.choice((1, 1, 2, 3))]
    actions = _ACTIONS if kind.status is not None else [one for one in _ACTIONS if one is not _write_status]
    actions = [*actions, *MORE.get(kind.target, ())]
    for _ in range(random.randint(_FEWEST, _MOST)):
        # The version of a list is that of everybody's writes, so nothing can be said of what relies on it.
        written = tuple(position for position, step in enumerate(steps) if step["ask"].startswith(_WRITES))
        step = random.choice(actions)(random, kind, random.choice(names), written)
        steps.append(step)
    own = f"&{_only(kind.names[0])}" if kind.is_shared else ""
    steps.append({"ask": f"GET {kind.target}{own.replace('&', '?')}"})
    version = "$(0.metadata.resourceVersion)"
    steps.append({"ask": f"GET {kind.target}?watch=1&timeoutSeconds=1&resourceVersion={version}{own}"})
    return steps


def _only(name: str) -> str:
    return f"fieldSelector=metadata.name%3D{name}"


def references(step: Json) -> set[int]:
    """The positions of the steps whose answers this one uses."""
    return {int(found[1]) for found in REFERENCE.finditer(str(step))}


def _renumbered(step: Any, removed: int) -> Any:
    if isinstance(step, dict):
        return {name: _renumbered(value, removed) for name, value in step.items()}
    if isinstance(step, list):
        return [_renumbered(value, removed) for value in step]
    if isinstance(step, str):
        return REFERENCE.sub(lambda found: f"$({int(found[1]) - (int(found[1]) > removed)}.{found[2]})", step)
    return step


def _query(random: Random, *pairs: tuple[str, Sequence[str], float]) -> str:
    chosen = [
        f"{name}={quote(random.choice(values), safe='$().')}"
        for name, values, chance in pairs
        if random.random() < chance
    ]
    return f"?{'&'.join(chosen)}" if chosen else ""


_PATHS = (
    "/metadata/labels",
    "/metadata/labels/x",
    "/metadata/finalizers/-",
    "/metadata/finalizers/0",
    "/metadata/annotations",
    "/data/k",
    "/data",
    "/spec/suspend",
    "/spec/size",
    "/spec/parallelism",
    "/metadata/name",
    "/nothing",
)
_ODD_TEXTS = (
    '{"metadata":{"name":"a","name":"b"}}',
    "{",
    "null",
    "[]",
    "metadata: {name: a}",
    '{"data":{"k":"v","k":"w"}}',
)
_DRY_RUN = ("dryRun", ("All", "All", "Some", ""), 0.06)
_VALIDATION = ("fieldValidation", ("Strict", "Warn", "Ignore", "Odd"), 0.15)
_MANAGER = ("fieldManager", _MANAGERS, 0.3)


def _create(random: Random, kind: Kind, name: str, written: Written) -> Json:
    return {
        "ask": f"POST {kind.target}{_query(random, _DRY_RUN, _VALIDATION, _MANAGER) if written else ''}",
        "body": kind.body(random, name),
        **_accept(random),
    }


def _get(random: Random, kind: Kind, name: str, written: Written) -> Json:
    return {"ask": f"GET {kind.target}/{name}", **_accept(random)}


def _list(random: Random, kind: Kind, name: str, written: Written) -> Json:
    selectors = ("x=1", "x!=1", "x in (1,2)", "x", "!x", "x=1,team", "x notin (2)", "a b", "x>0")
    fields = [
        f"{one}{random.choice(('=', '!=', '=='))}{random.choice((*NAMES, 'Pending', 'n', '1', 'A'))}"
        for one in kind.fields_selected
    ]
    # What else there is in a collection that all share is nobody's business here.
    own = [f"metadata.name={name}", f"metadata.name={name},{random.choice(fields)}"] if kind.is_shared else []
    query = _query(
        random,
        ("labelSelector", selectors, 0.4),
        ("fieldSelector", own or fields, 1.0 if own else 0.3),
        ("limit", ("1", "2", "0", "-1"), 0.0 if own else 0.3),
    )
    return {"ask": f"GET {kind.target}{query}", **_accept(random)}


def _put(random: Random, kind: Kind, name: str, written: Written) -> Json:
    body = kind.body(random, name)
    if random.random() < 0.3 and isinstance(body["metadata"], dict):
        # Of some earlier answer, which may be stale, or of no object at all.
        body["metadata"]["resourceVersion"] = f"$({random.choice(written)}.metadata.resourceVersion)"
    if random.random() < 0.1 and isinstance(body["metadata"], dict):
        body["metadata"]["uid"] = f"$({random.choice(written)}.metadata.uid)"
    return {"ask": f"PUT {kind.target}/{name}{_query(random, _DRY_RUN, _VALIDATION, _MANAGER)}", "body": body}


def _merge(random: Random, kind: Kind, name: str, written: Written) -> Json:
    patch: Json = _some_of(random, kind.body(random, name))
    patch.pop("kind", None)
    patch.pop("apiVersion", None)
    if random.random() < 0.3:
        patch["metadata"] = {**metadata(random), random.choice(("labels", "finalizers", "annotations")): None}
    content = random.choice((MERGE, STRATEGIC))
    query = _query(random, _DRY_RUN, _VALIDATION, _MANAGER)
    return {"ask": f"PATCH {kind.target}/{name}{query}", "content": content, "body": patch}


def _json_patch(random: Random, kind: Kind, name: str, written: Written) -> Json:
    values: tuple[object, ...] = ({}, {"x": "1"}, "1", "x.io/a", 2, True, None, [])
    operations = []
    for _ in range(random.randint(1, 3)):
        word = random.choice(("add", "add", "replace", "remove", "test"))
        operation: Json = {"op": word, "path": random.choice(_PATHS)}
        if word != "remove":
            operation["value"] = random.choice(values)
        operations.append(operation)
    if random.random() < 0.2:
        version = f"$({random.choice(written)}.metadata.resourceVersion)"
        operations.insert(0, {"op": "replace", "path": "/metadata/resourceVersion", "value": version})
    query = _query(random, _DRY_RUN, _MANAGER)
    return {"ask": f"PATCH {kind.target}/{name}{query}", "content": JSON_PATCH, "body": operations}


def _apply(random: Random, kind: Kind, name: str, written: Written) -> Json:
    body = kind.body(random, name)
    if random.random() < 0.5:
        body = {**_some_of(random, body), "apiVersion": kind.api_version, "kind": kind.kind}
        body["metadata"] = {**metadata(random), "name": name}
    query = f"?fieldManager={random.choice(_MANAGERS)}" + random.choice(("", "", "&force=true", "&dryRun=All"))
    return {"ask": f"PATCH {kind.target}/{name}{query}", "content": APPLY, "body": body}


def _delete(random: Random, kind: Kind, name: str, written: Written) -> Json:
    options: Json = {}
    if random.random() < 0.4:
        options["propagationPolicy"] = random.choice(("Background", "Foreground", "Orphan", "Odd"))
    if random.random() < 0.2:
        options["gracePeriodSeconds"] = random.choice((0, 1, 30, -1))
    if random.random() < 0.15:
        field = random.choice(("uid", "resourceVersion"))
        options["preconditions"] = {field: f"$({random.choice(written)}.metadata.{field})"}
    if random.random() < 0.05:
        options["dryRun"] = ["All"]
    if random.random() < 0.03:
        options["orphanDependents"] = random.choice((True, False))
    return {"ask": f"DELETE {kind.target}/{name}{_query(random, _DRY_RUN)}", **({"body": options} if options else {})}


def _delete_collection(random: Random, kind: Kind, name: str, written: Written) -> Json:
    query = _query(
        random,
        ("labelSelector", ("x=1", "x", "!x"), 0.5),
        ("fieldSelector", (f"metadata.name={name}",), 1.0 if kind.is_shared else 0.3),
        _DRY_RUN,
    )
    return {"ask": f"DELETE {kind.target}{query}", "body": {"propagationPolicy": "Background"}}


def _write_status(random: Random, kind: Kind, name: str, written: Written) -> Json:
    assert kind.status is not None
    status = kind.status(random)
    body: Json = {"status": status}
    if random.random() < 0.1:
        body["metadata"] = metadata(random)
    if random.random() < 0.1:
        spoil(random, body)
    content = random.choice((MERGE, STRATEGIC))
    return {"ask": f"PATCH {kind.target}/{name}/status{_query(random, _DRY_RUN)}", "content": content, "body": body}


def _let_go(random: Random, kind: Kind, name: str, written: Written) -> Json:
    return {"ask": f"PATCH {kind.target}/{name}", "content": MERGE, "body": {"metadata": {"finalizers": None}}}


def _label(random: Random, kind: Kind, name: str, written: Written) -> Json:
    body = {"metadata": {random.choice(("labels", "annotations")): {"x": random.choice(("1", "2", None))}}}
    return {"ask": f"PATCH {kind.target}/{name}", "content": random.choice((MERGE, STRATEGIC)), "body": body}


def _watch(random: Random, kind: Kind, name: str, written: Written) -> Json:
    query = "watch=1&timeoutSeconds=1&resourceVersion=$(0.metadata.resourceVersion)"
    selector = random.choice(("labelSelector=x%3D1", "labelSelector=x", _only(name)))
    if kind.is_shared:
        selector = _only(name) + random.choice(("", "&labelSelector=x"))
    return {"ask": f"GET {kind.target}?{query}&{selector}", **_accept(random)}


def _odd(random: Random, kind: Kind, name: str, written: Written) -> Json:
    method = random.choice(("POST", "PUT", "PATCH"))
    target = kind.target if method == "POST" else f"{kind.target}/{name}"
    content = random.choice((MERGE, STRATEGIC, JSON_PATCH, JSON)) if method == "PATCH" else JSON
    return {"ask": f"{method} {target}", "text": random.choice(_ODD_TEXTS), "content": content}


_ACTIONS: Sequence[Callable[[Random, Kind, str, Written], Json]] = (
    _create,
    _create,
    _get,
    _list,
    _put,
    _put,
    _put,
    _merge,
    _merge,
    _merge,
    _json_patch,
    _apply,
    _apply,
    _apply,
    _delete,
    _delete,
    _delete_collection,
    _write_status,
    _write_status,
    _let_go,
    _label,
    _label,
    _watch,
    _odd,
)


def _accept(random: Random) -> Json:
    return {"accept": random.choice((TABLE, PARTIAL))} if random.random() < 0.05 else {}


def _some_of(random: Random, body: Json) -> Json:
    """Part of an object, at every level."""
    return {
        name: _some_of(random, value) if isinstance(value, dict) else value
        for name, value in body.items()
        if random.random() < 0.6
    }
