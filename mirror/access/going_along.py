"""Looks at what goes along with a Job on the management cluster, for ``diff`` (D27): what is missing is not copied.

Only for who may get the object of that name there, asked before anything is looked for (D18), and only of kinds and
namespaces that the settings allow, which the manager may read for copying anyway. Metadata alone, but of
ServiceAccounts, whose image pull secrets go along with them. Used by ``looking``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from mirror.access.answers import StatusError
from mirror.access.bounds import Bounds
from mirror.access.reviews import Person, Reviews
from mirror.batch.syntax import subdomain_problems
from mirror.decide import dependencies as deciding
from mirror.decide.dependencies import Contents, Name
from mirror.kinds.base import Kind
from mirror.kinds.dependencies import RESOURCES, BadCarry, DependencyPolicy, requested_kinds
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, KubeError, NotFound, TooLarge
from mirror.kube.objects import Object
from mirror.kube.permissions import Permission
from mirror.kube.requests import Rank
from mirror.kube.resources import SECRETS, SERVICE_ACCOUNTS
from mirror.model.reasons import Reason

EXISTS, MISSING, REFUSED, UNKNOWN = "Exists", "Missing", "Refused", "Unknown"


class Along(msgspec.Struct, frozen=True, rename="camel"):
    """One object that goes along, as it is on the management cluster."""

    object: str
    """Kind and name."""
    state: str
    """``Exists``, ``Missing``, ``Refused`` (it exists and is never copied) or ``Unknown``."""
    message: str = ""


@dataclass(slots=True)
class Here:
    """What was looked for here."""

    until: float
    """In the loop's time: what is not answered by then is not known."""
    found: dict[Name, Along] = field(default_factory=dict)
    optional: set[Name] = field(default_factory=set)
    pull_secrets: dict[Name, str] = field(default_factory=dict)
    """What ServiceAccounts that go along name, and no pod does: each with one of these accounts."""

    def is_sent(self, name: Name) -> bool:
        """Whether it exists here, and goes along."""
        return name in self.found and self.found[name].state == EXISTS

    def is_missing(self, name: Name) -> bool:
        return name in self.found and self.found[name].state == MISSING


class GoingAlong:
    """Make it with what ``access`` has; ``policy``: None where nothing goes along."""

    def __init__(self, management: Client, reviews: Reviews, policy: DependencyPolicy | None, bounds: Bounds) -> None:
        self._management = management
        self._reviews = reviews
        self._policy = policy or DependencyPolicy()
        self._bounds = bounds

    def requested(self, kind: Kind, source: Object) -> dict[Name, bool]:
        """What goes along with a source, and whether its pods run without it; nothing once it has finished."""
        try:
            kinds = requested_kinds(source.annotations) & self._policy.allowed(source.metadata.namespace)
        except BadCarry:  # the report says so
            return {}
        if not kinds or kind.summary(source).is_finished:
            return {}
        return deciding.requested(kind.references(source), kinds)

    async def look(self, namespace: str, wanted: Mapping[Name, bool], person: Person, *, most: int) -> Here:
        """What of this is here, and what accounts among it name for pulling images: so many objects at most.

        All of it in the time that one answer may take, so that a slow cluster leaves time for the workers.
        """
        here = Here(until=asyncio.get_running_loop().time() + self._bounds.answer_seconds)
        for name in list(wanted)[:most]:
            text = "goes along"
            here.found[name] = await self._look_for(here, namespace, name, person, text, is_optional=wanted[name])
        with_secrets = SECRETS.kind in self._policy.allowed(namespace)
        new = [name for name in here.pull_secrets if name not in wanted]
        here.pull_secrets = {name: here.pull_secrets[name] for name in new}
        for name in new[: most - len(here.found)] if with_secrets else ():
            text = f"goes along, as an image pull secret of ServiceAccount {here.pull_secrets[name]}"
            here.found[name] = await self._look_for(here, namespace, name, person, text, is_optional=True)
        return here

    async def _look_for(
        self, here: Here, namespace: str, name: Name, person: Person, text: str, *, is_optional: bool
    ) -> Along:
        if is_optional:
            here.optional.add(name)
        if subdomain_problems(name.name):
            return _missing(name, namespace, is_optional=is_optional)
        try:
            async with asyncio.timeout_at(here.until):
                original = await self._read(namespace, name, person)
        except NotFound:
            return _missing(name, namespace, is_optional=is_optional)
        except Forbidden:
            why = f"the manager has no permission to get {RESOURCES[name.kind].plural} on the management cluster"
            return Along(str(name), UNKNOWN, f"{why} ({Reason.DEPENDENCY_REFUSED})")
        except TooLarge:
            return _refused(name, "it is too large")
        except StatusError as error:
            return Along(str(name), UNKNOWN, error.message)
        except (KubeError, TimeoutError):
            return Along(str(name), UNKNOWN, "it cannot be read on the management cluster now")
        if (never := deciding.judge_originals({name: original})) is not None:
            return _refused(name, never.text)
        for one in _pull_secrets(original):
            here.pull_secrets.setdefault(one, name.name)
        return Along(str(name), EXISTS, text)

    async def _read(self, namespace: str, name: Name, person: Person) -> Contents:
        resource = RESOURCES[name.kind]
        right = Permission("get", resource.group, resource.plural, name=name.name, namespace=namespace)
        await self._reviews.require(person, right)
        request = requests.get(resource, name.name, namespace=namespace)
        if name.kind != SERVICE_ACCOUNTS.kind:
            request = request.metadata_only()
        request = replace(request, deadline_seconds=self._bounds.answer_seconds, most_bytes=self._bounds.list_bytes)
        return deciding.read_contents(await self._management.send(request.in_line(Rank.LAST, person.name)))


def _pull_secrets(original: Contents) -> Iterable[Name]:
    return deciding.pull_secrets({Name(SERVICE_ACCOUNTS.kind, original.metadata.name): original})


def _missing(name: Name, namespace: str, *, is_optional: bool) -> Along:
    if is_optional:
        return Along(str(name), MISSING, "optional: the Job does not wait for it")
    fix = f"create it in namespace {namespace} of the management cluster, or correct its name"
    return Along(str(name), MISSING, f"the Job waits for it ({Reason.DEPENDENCY_MISSING}): {fix}")


def _refused(name: Name, why: str) -> Along:
    return Along(str(name), REFUSED, f"{why} ({Reason.DEPENDENCY_REFUSED})")
