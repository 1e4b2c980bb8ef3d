"""Tells what of the setting ``kinds`` the management cluster does not know: paths that are no fields of their kind.

Asked once for each kind, as soon as it is served; whether workers know the fields ``mirror kinds --check`` says.
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
        self._log = log

    async def run(self) -> None:
        """Look until cancelled."""
        while self._unseen:
            for path, kind in list(self._unseen.items()):
                if await self._look(path, kind):
                    del self._unseen[path]
            await asyncio.sleep(INTERVAL_SECONDS)
        await asyncio.Event().wait()  # there is nothing more to do

    async def _look(self, path: str, kind: DeclaredKind) -> bool:
        """Whether the kind is served, so that everything is said of it."""
        try:
            schema = await schema_of(self._management, kind.resource)
            problems = unknown_fields(kind.entry, schema, path=path) if schema is not None else []
        except KubeError as error:
            self._log.debug("schema not read", kind=kind.name, error=error)
            return False
        for problem in problems:
            self._log.warning("setting does not fit the kind", kind=kind.name, problem=str(problem))
        return schema is not None
