"""Reads the definition of each kind on the management cluster, as soon as it is served and whenever it is another one.

What of the setting ``kinds`` it does not know is logged and counted: paths that are no fields of the kind. Without
some of them nothing can be mirrored: of such a kind nothing is placed until that has changed (``stopped_kinds``).
Whether workers know them is ``worker_schemas``'. The kind learns what a status may be: by the definition of an earlier
release, fields of a later one would be left out for ever. It is also read again once a status is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from mirror.kinds.base import Kind
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.schemas import unknown_fields, unusable
from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.openapi import addresses, document_of, schema_of
from mirror.settings.kinds import KindEntry
from mirror.telemetry.logs import Log

INTERVAL_SECONDS = 60.0


def kinds_by_path(kinds: Kinds, entries: tuple[KindEntry, ...]) -> dict[str, DeclaredKind]:
    """The kinds that the settings name or declare, by where they do: ``kinds[0]``."""
    found = {}
    for index, entry in enumerate(entries):
        for kind in kinds:
            if isinstance(kind, DeclaredKind) and (kind.name == entry.kind or kind.entry.resource == entry.resource):
                found[f"kinds[{index}]"] = kind
    return found


class KindSchemas:
    """Looks at the addresses of all definitions, and reads those that are not known as they are."""

    def __init__(
        self,
        management: Client,
        kinds: Mapping[str, DeclaredKind],
        look_again: Callable[[Kind], None] = lambda kind: None,
        *,
        count: Callable[[str, int], None] = lambda kind, unknown: None,
        log: Log,
    ) -> None:
        """Begin with nothing known.

        Args:
            management: the cluster.
            kinds: by their paths in the settings.
            look_again: at the sources of a kind whose statuses differ, or that is placed from now on, or no longer.
            count: by name of the kind, how many paths are no fields of it.
            log: where they are named.
        """
        self._management = management
        self._kinds = dict(kinds)
        self._look_again = look_again
        self._count = count
        self._log = log
        self._unknown: dict[str, tuple[str, ...]] = {}
        """By path, what a definition that was read does not know."""
        self._read_at: dict[str, str] = {}
        """By path, the address that a definition had before it was read."""
        self._statuses: dict[str, object] = {}
        """By path, what a definition that was read says of the status."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            published = await self._addresses()
            for path, kind in self._kinds.items():
                address = published.get(document_of(kind.resource), "")
                if published and not address:
                    continue  # it is not served
                is_other = bool(address) and address != self._read_at.get(path)
                if path not in self._statuses or kind.is_schema_doubted or is_other:
                    await self._read(path, kind, address)
            await asyncio.sleep(INTERVAL_SECONDS)

    async def _addresses(self) -> Mapping[str, str]:
        try:
            return await addresses(self._management)
        except KubeError as error:
            self._log.debug("addresses of schemas not read", error=error)
            return {}

    async def _read(self, path: str, kind: DeclaredKind, address: str) -> None:
        """Read the definition, if the kind is served."""
        is_first = path not in self._statuses
        try:
            schema = await schema_of(self._management, kind.resource)
            if schema is None:
                return
            unknown = tuple(map(str, unknown_fields(kind.entry, schema, path=path)))
            without = tuple(map(str, unusable(kind.entry, schema, path=path)))
            status = schema.part("status")
            kind.learn_status(status)
        except KubeError as error:
            self._log.debug("schema not read", kind=kind.name, error=error)
            return
        for problem in unknown if unknown != self._unknown.get(path, ()) else ():
            self._log.warning("setting does not fit the kind", kind=kind.name, problem=problem)
        self._count(kind.name, len(unknown))
        self._unknown[path], self._read_at[path] = unknown, address
        is_other = not is_first and status != self._statuses[path]
        if is_other:
            self._log.info("definition changed", kind=kind.name)
        if is_other or without != kind.unusable:
            kind.unusable = without
            self._look_again(kind)
        self._statuses[path] = status
