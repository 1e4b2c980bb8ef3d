"""Reads what goes along with a source, by name, where the source is (D27).

Used by ``dependencies``, ``dependencies_ahead`` and ``dependency_rounds``. Nothing is kept of what was read. Not here:
what may go along and why not (``decide.dependencies``), and copies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mirror.batch.syntax import subdomain_problems
from mirror.controllers.refusing import refusal_text
from mirror.decide import dependencies as deciding
from mirror.decide.dependencies import Contents, Name
from mirror.kinds.base import Kind
from mirror.kinds.dependencies import RESOURCES, BadCarry, DependencyPolicy, requested_kinds
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, KubeError, NotFound, TooLarge
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.reasons import Obstruction, Reason

Sent = Mapping[Name, Contents]
"""Objects that go along, as they are on the management cluster."""


class Originals:
    """Of the kinds and namespaces that the settings allow."""

    def __init__(self, management: Client, policy: DependencyPolicy) -> None:
        self._management = management
        self._policy = policy

    def wanted_by(self, kind: Kind, source: Object) -> dict[Name, bool]:
        """What goes along with a source, and whether its pods run without it; nothing where that is not allowed.

        Raises:
            BadCarry: its annotation cannot be understood.
        """
        kinds = requested_kinds(source.annotations) & self._policy.allowed(source.metadata.namespace)
        return deciding.requested(kind.references(source), kinds) if kinds else {}

    async def of_source(self, kind: Kind, source: Object) -> Sent | Obstruction:
        """What goes along with a source, as it is now, or why it cannot go along.

        Raises:
            KubeError: it could not be asked.
        """
        try:
            wanted = self.wanted_by(kind, source)
        except BadCarry as error:
            return Obstruction(Reason.INVALID_ANNOTATION, f"annotation {names.CARRY}: {error}")
        if not wanted:
            return {}
        if (why := deciding.too_many(len(wanted))) is not None:
            return why
        return await self._with_pull_secrets(source.metadata.namespace, wanted)

    async def _with_pull_secrets(
        self, namespace: str, wanted: Mapping[Name, bool]
    ) -> dict[Name, Contents] | Obstruction:
        found = await self.read(namespace, wanted)
        pull_secrets: dict[Name, bool] = {}
        if not isinstance(found, Obstruction):
            allowed = self._policy.allowed(namespace)
            named = deciding.pull_secrets(found)
            pull_secrets = {name: True for name in named if name.kind in allowed and name not in wanted}
        if isinstance(found, Obstruction) or not pull_secrets:
            return found if isinstance(found, Obstruction) else deciding.judge_originals(found) or found
        if (why := deciding.too_many(len(wanted) + len(pull_secrets))) is not None:
            return why
        more = await self.read(namespace, pull_secrets)
        return (
            more if isinstance(more, Obstruction) else deciding.judge_originals({**found, **more}) or {**found, **more}
        )

    async def read(self, namespace: str, wanted: Mapping[Name, bool]) -> dict[Name, Contents] | Obstruction:
        """Those that exist of what is wanted, or why it cannot go along.

        Raises:
            KubeError: it could not be asked.
        """
        # API servers look at few of the names that a pod template has: none of these is one that an object can have.
        impossible = {name for name in wanted if subdomain_problems(name.name)}
        async with asyncio.TaskGroup() as scope:
            tasks = {
                name: scope.create_task(self._read_one(namespace, name), name="read what goes along")
                for name in wanted
                if name not in impossible
            }
        lacking = [name for name in wanted if name in impossible and not wanted[name]]
        found: dict[Name, Contents] = {}
        for name, task in tasks.items():
            match task.result():
                case Contents() as original:
                    found[name] = original
                case NotFound():
                    if not wanted[name]:
                        lacking.append(name)
                case TooLarge():
                    return deciding.unreadable(name, "it is too large")
                case Forbidden() as error:
                    return deciding.unreadable(name, refusal_text(error))
                case error:
                    raise error
        return deciding.missing(lacking) or found

    async def _read_one(self, namespace: str, name: Name) -> Contents | KubeError:
        try:
            request = requests.get(RESOURCES[name.kind], name.name, namespace=namespace)
            return deciding.read_contents(await self._management.send(request))
        except KubeError as error:
            return error
