"""Mutating admission of Jobs on a worker, as webhooks of queues, quotas and policies do it; switched on and off.

That of a queue knows other kinds, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
from queue_forms import FORMS, JOB

from mirror.embedded.apiserver.admission.plugins import Attributes
from mirror.model import names
from mirror.model.field_paths import Place, put
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane

Change = Callable[[Json], None]
QUEUE = "queue"
"""The change that a queue makes."""
QUEUED: Mapping[str, Place] = {form.stored_as: form.suspend for form in FORMS}
"""Where it suspends objects of each kind, by what storage calls them."""


class AdmittingPlane(ControlPlane):
    """A control plane whose admission changes the Jobs that are written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.mutations: dict[str, str] = {}
        """Names of ``CHANGES``, by operation (CREATE, UPDATE)."""

    def start(self) -> None:
        was_running = self.is_running
        super().start()
        if not was_running:
            admission: Any = _Mutating(self.server.dependencies.admission, self.mutations)
            self.server.dependencies = replace(self.server.dependencies, admission=admission)


class _Mutating:
    """In place of a server's admission."""

    def __init__(self, inner: Any, mutations: Mapping[str, str]) -> None:
        self._inner = inner
        self._mutations = mutations

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def mutate(self, attributes: Attributes) -> list[str]:
        warnings: list[str] = await self._inner.mutate(attributes)
        wanted, body = self._mutations.get(attributes.operation), attributes.body
        if not wanted or body is None or attributes.subresource:
            return warnings
        if attributes.kind.plural == "jobs":
            if "managedBy" not in body["spec"]:
                CHANGES[wanted](body)
        elif wanted == QUEUE and attributes.kind.resource in QUEUED:
            _hold(body, QUEUED[attributes.kind.resource])
        return warnings


def _template(body: Json) -> Json:
    template: Json = body["spec"]["template"]
    template.setdefault("metadata", {})
    return template


def _set(map_of: Callable[[Json], Json], field: str, key: str, value: str | None) -> Change:
    """Put a value into a map, or take it away; the map is made where there is none."""

    def change(body: Json) -> None:
        found = map_of(body).get(field) or {}
        map_of(body)[field] = {one: kept for one, kept in found.items() if one != key} | ({key: value} if value else {})

    return change


def _resources(body: Json) -> None:
    for container in _template(body)["spec"]["containers"]:
        container["resources"] = {"requests": {"cpu": "100m"}}


def _tolerations(body: Json) -> None:
    _template(body)["spec"]["tolerations"] = [{"key": "pool", "operator": "Exists", "effect": "NoSchedule"}]


def _node_selector(body: Json) -> None:
    _template(body)["spec"]["nodeSelector"] = {"beta.kubernetes.io/os": "linux"}


def _suspend(body: Json) -> None:
    body["spec"]["suspend"] = True


def _queue(body: Json) -> None:
    """A queue of the worker holds what is in it."""
    _hold(body, JOB.suspend)


def _hold(body: Json, suspend: Place) -> None:
    """The same, of any kind."""
    if names.QUEUE_NAME in (body["metadata"].get("labels") or {}):
        body["spec"] = put(body, suspend, True)["spec"]


def _one_part_less(body: Json) -> None:
    """The note as a version of the manager wrote it that knew fewer parts."""
    note = msgspec.json.decode((body["metadata"].get("annotations") or {}).get(names.CARRIED, "{}"))
    if note:
        note.pop(sorted(note)[0])
        body["metadata"]["annotations"][names.CARRIED] = msgspec.json.encode(note).decode()


def _metadata(body: Json) -> Json:
    found: Json = body["metadata"]
    return found


def _pod_metadata(body: Json) -> Json:
    found: Json = _template(body)["metadata"]
    return found


CHANGES: Mapping[str, Change] = {
    "template label": _set(_pod_metadata, "labels", "team", "policy"),
    "template annotation": _set(_pod_metadata, "annotations", "example.com/injected", "yes"),
    "tolerations": _tolerations,
    "node selector": _node_selector,
    "resources": _resources,
    "label": _set(_metadata, "labels", "team", "policy"),
    "label removed": _set(_metadata, "labels", "team", None),
    "annotation": _set(_metadata, "annotations", "example.com/note", "policy"),
    "suspend": _suspend,
    QUEUE: _queue,
    "origin removed": _set(_metadata, "labels", names.ORIGIN, None),
    "source-uid removed": _set(_metadata, "labels", names.SOURCE_UID, None),
    "source-uid replaced": _set(_metadata, "labels", names.SOURCE_UID, "policy"),
    "note removed": _set(_metadata, "annotations", names.CARRIED, None),
    "note of an earlier version": _one_part_less,
}
"""What admission does, by name."""
