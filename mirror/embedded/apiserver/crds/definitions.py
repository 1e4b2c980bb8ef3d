"""Carries definitions out: their names, the kinds that are served by them, and the end of their objects.

Works after a write of a definition, in the loop's next turn; what is stored when a server starts is served at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping

from mirror.batch import times
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.crds import kind as crd
from mirror.embedded.apiserver.crds import naming, scaling
from mirror.embedded.apiserver.crds.custom import Custom
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.registry.dependencies import Action
from mirror.embedded.apiserver.request.info import ActionKey
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Record, StorageConflict
from mirror.runtime.clock import Clock

_STORED_AS = crd.KIND.stored_as
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order in which kube-apiserver tells of them."""


class Definitions:
    """The definitions of one server."""

    def __init__(
        self, *, storage: Storage, registry: Registry, clock: Clock, actions: MutableMapping[ActionKey, Action]
    ) -> None:
        self._storage = storage
        self._registry = registry
        self._clock = clock
        self._actions = actions
        self._served: dict[tuple[str, str, str], str] = {}
        """By group, version and plural, what the kind was made of."""
        self._ending: set[str] = set()
        """Collections whose definition is being deleted."""
        self._is_due = self._is_over = False
        self._stops: list[Callable[[], None]] = []

    def start(self) -> None:
        """Serve definitions, those that are stored already at once."""
        self._registry.add(crd.KIND)
        self._stops.append(self._storage.listen(_STORED_AS, self._soon))
        self._serve([objects.decode(record.raw) for record in self._records()])
        self._soon()

    def stop(self) -> None:
        """Look at the store no more: it may outlive this server."""
        for stop in self._stops:
            stop()
        self._is_over = True

    def _soon(self) -> None:
        if self._is_due:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a server that is being built: its first request has a loop
            self._work()
            return
        self._is_due = True
        loop.call_soon(self._work)

    def _work(self) -> None:
        if self._is_over:
            return
        self._is_due = False
        try:
            self._settle()
        except StorageConflict:
            self._soon()

    def _records(self) -> list[Record]:
        return list(self._storage.records(_STORED_AS, None))

    def _settle(self) -> None:
        """Judge each definition, oldest first, then serve what is established."""
        now = times.of(self._clock.now())
        records = sorted(self._records(), key=lambda record: record.version)
        bodies: dict[str, Json] = {record.name: objects.decode(record.raw) for record in records}
        for record in records:
            body = bodies[record.name]
            if "deletionTimestamp" in body["metadata"]:
                if self._has_ended(record, body):
                    del bodies[record.name]
                continue
            group = body["spec"]["group"]
            others = [one for name, one in bodies.items() if name != record.name and one["spec"]["group"] == group]
            status = naming.settled(body, others, now)
            if status != body.get("status"):
                bodies[record.name] = body = body | {"status": status}
                object_meta.store(self._storage, crd.KIND, body, replacing=record)
        self._serve(list(bodies.values()))

    def _serve(self, definitions: list[Json]) -> None:
        wanted: dict[tuple[str, str, str], tuple[str, Json, Json]] = {}
        for body in definitions:
            if not crd.has_condition(body, "Established"):
                continue
            spec = body["spec"]
            for version in spec["versions"]:
                if version["served"]:
                    of_meta = body["metadata"]
                    made_of = f"{of_meta['uid']} {of_meta.get('generation', 0)} {'deletionTimestamp' in of_meta}"
                    wanted[spec["group"], version["name"], spec["names"]["plural"]] = made_of, body, version
        for key in self._served.keys() - wanted.keys():
            self._withdraw(key)
        for key, (made_of, body, version) in wanted.items():
            if self._served.get(key) != made_of:
                self._offer(key, made_of, body, version)

    def _offer(self, key: tuple[str, str, str], made_of: str, body: Json, version: Json) -> None:
        group, _, plural = key
        kind = _kind_of(body, version)
        self._registry.add(kind)
        self._served[key] = made_of
        scale = (version.get("subresources") or {}).get("scale")
        actions = scaling.actions(kind, scale) if scale else {}
        for method in scaling.METHODS:
            self._actions.pop((f"{plural}.{group}", "scale", method), None)
        self._actions.update(actions)

    def _withdraw(self, key: tuple[str, str, str]) -> None:
        group, name, plural = key
        self._registry.remove(group, name, plural)
        del self._served[key]
        for method in scaling.METHODS:
            self._actions.pop((f"{plural}.{group}", "scale", method), None)

    def _has_ended(self, record: Record, body: Json) -> bool:
        """Delete the objects of a definition that is being deleted, and with the last one the definition."""
        spec = body["spec"]
        collection = f"{spec['names']['plural']}.{spec['group']}"
        self._delete_all(_kind_of(body, spec["versions"][0]), collection)
        if self._storage.count(collection, None):
            if collection not in self._ending:  # somebody's finalizers hold some
                self._ending.add(collection)
                self._stops.append(self._storage.listen(collection, self._soon))
            return False
        left = [one for one in body["metadata"].get("finalizers") or () if one != crd.CLEANUP]
        if left:
            if left != body["metadata"].get("finalizers"):
                body["metadata"]["finalizers"] = left
                object_meta.store(self._storage, crd.KIND, body, replacing=record)
            return False
        object_meta.remove(self._storage, crd.KIND, record)
        return True

    def _delete_all(self, kind: Kind, collection: str) -> None:
        for record in list(self._storage.records(collection, None)):
            body = objects.decode(record.raw)
            if not body["metadata"].get("finalizers"):
                object_meta.remove(self._storage, kind, record)
            elif "deletionTimestamp" not in body["metadata"]:
                body["metadata"]["deletionTimestamp"] = times.of(self._clock.now())
                body["metadata"]["deletionGracePeriodSeconds"] = 0
                object_meta.store(self._storage, kind, body, replacing=record)


def _kind_of(definition: Json, version: Json) -> Kind:
    """What a definition defines, in one of its versions."""
    spec, strategy = definition["spec"], Custom(definition, version)
    names = definition["status"]["acceptedNames"]
    return Kind(
        spec["group"],
        version["name"],
        names["kind"],
        spec["names"]["plural"],
        strategy,
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        is_namespaced=strategy.is_namespaced,
        verbs=_VERBS,
        is_ending="deletionTimestamp" in definition["metadata"],
    )
