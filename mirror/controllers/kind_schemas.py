"""Reads the definition of each kind on the management cluster, as soon as it is served.

Told once is what of the setting ``kinds`` it does not know: paths that are no fields of the kind; whether workers know
them ``mirror kinds --check`` says. The kind learns what a status may be. It is read again once a status is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.schemas import unknown_fields
from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.openapi import schema_of
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
    """Looks until every kind has been found."""

    def __init__(self, management: Client, kinds: Mapping[str, DeclaredKind], *, log: Log) -> None:
        """``kinds``: by their paths in the settings."""
        self._management = management
        self._unseen = dict(kinds)
        self._kinds = dict(kinds)
        self._log = log

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            for path, kind in self._kinds.items():
                if path in self._unseen or kind.is_schema_doubted:
                    await self._look(path, kind)
            await asyncio.sleep(INTERVAL_SECONDS)

    async def _look(self, path: str, kind: DeclaredKind) -> None:
        """Read the definition, if the kind is served."""
        try:
            schema = await schema_of(self._management, kind.resource)
            if schema is None:
                return
            problems = unknown_fields(kind.entry, schema, path=path) if path in self._unseen else []
            kind.learn_status(schema.part("status"))
        except KubeError as error:
            self._log.debug("schema not read", kind=kind.name, error=error)
            return
        for problem in problems:
            self._log.warning("setting does not fit the kind", kind=kind.name, problem=str(problem))
        self._unseen.pop(path, None)
