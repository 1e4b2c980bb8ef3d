"""Each kind on one cluster: is it served, in which version, may the manager use it; what is missing and how to mend it.

On a worker it is asked with the manager's own credentials, on the management cluster with the operator's about the
manager's account. Jobs are part of every cluster, and not looked at here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from mirror.cli.worker.operations.checking.judging import Finding, fail, ok, warn
from mirror.cli.worker.operations.checking.reviewing import allowed
from mirror.cli.worker.operations.roles import ACCOUNT
from mirror.cli.worker.operations.sites import ManagementCluster
from mirror.controllers.multikueue import CLUSTERS, what_is_here, what_to_do
from mirror.kinds import permissions
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import built_in
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.schemas import lacking_on_worker, unknown_fields, unusable
from mirror.kinds.registry import Kinds, resource_name
from mirror.kube.client import Client
from mirror.kube.discovery import has_no_subresource, served_versions
from mirror.kube.errors import KubeError, describe
from mirror.kube.openapi import schema_of
from mirror.kube.permissions import Permission
from mirror.kube.resources import ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS
from mirror.model.text import clean

Ask = Callable[[Sequence[Permission]], Awaitable[dict[Permission, bool | None]]]
"""Which permissions the manager has; None: that was not answered."""


@dataclass(frozen=True, slots=True)
class KindFacts:
    """What a cluster says of one kind."""

    kind: Kind
    versions: tuple[str, ...] = ()
    """In which it is served; the kind's own alone where that is one of them."""
    missing: tuple[Permission, ...] = ()
    is_reviewed: bool = True
    """Whether it was answered which permissions the manager has."""
    unknown: tuple[str, ...] = ()
    """Paths of its entry that are no fields there."""
    unusable: tuple[str, ...] = ()
    """Those of them without which nothing can be mirrored, or on a worker nothing works."""
    has_status: bool = True
    """Whether its definition has the status subresource."""
    is_shared: bool = False
    """Whether a MultiKueue of this cluster may run its objects, too."""
    trouble: str = ""
    """Why nothing is known."""


async def examine_worker(
    client: Client, name: str, kinds: Kinds, namespaces: Sequence[str], *, by: str = ""
) -> list[Finding]:
    """Each kind on a worker.

    Args:
        client: with the manager's credentials.
        name: of the worker.
        kinds: of the manager.
        namespaces: where it has its permissions, if not everywhere.
        by: what declares the worker; empty: its own Secret.
    """

    async def ask(wanted: Sequence[Permission]) -> dict[Permission, bool | None]:
        return dict(await allowed(client, ACCESS_REVIEWS, wanted))

    facts = await _facts(client, kinds, ask, lambda kind: permissions.on_worker(kind), namespaces)
    return [judge_on_worker(name, one, by=by) for one in facts]


async def examine_management(home: ManagementCluster, kinds: Kinds, namespaces: Sequence[str]) -> list[Finding]:
    """Each kind on the management cluster.

    Args:
        home: with the operator's permissions.
        kinds: of the manager.
        namespaces: the setting of this name.
    """
    account, client = f"system:serviceaccount:{home.namespace}:{ACCOUNT}", home.site.client

    async def ask(wanted: Sequence[Permission]) -> dict[Permission, bool | None]:
        return await allowed(client, SUBJECT_ACCESS_REVIEWS, wanted, user=account)

    facts = await _facts(client, kinds, ask, lambda kind: permissions.on_management(kind), namespaces, is_home=True)
    return [judge_on_management(one) for one in facts]


async def _facts(
    client: Client,
    kinds: Kinds,
    ask: Ask,
    rights: Callable[[Kind], Iterable[permissions.Right]],
    namespaces: Sequence[str],
    *,
    is_home: bool = False,
) -> list[KindFacts]:
    async def look(kind: Kind) -> KindFacts:
        try:
            versions = await served_versions(client, kind.resource)
            is_served = kind.resource.version in versions
            unknown, without = await _unknown_fields(client, kind, is_home=is_home) if is_served else ((), ())
            has_status = not is_served or not await has_no_subresource(client, kind.resource, "status")
            may_share = is_home and isinstance(kind, DeclaredKind) and kind.is_shared
            is_shared = may_share and bool(await served_versions(client, CLUSTERS))
        except KubeError as error:
            return KindFacts(kind, trouble=describe(error))
        wanted = [one for where in namespaces or ("",) for one in permissions.permissions(rights(kind), where)]
        answers = await ask(wanted)
        missing = tuple(one for one, has in answers.items() if has is False)
        is_reviewed = None not in answers.values()
        return KindFacts(kind, versions, missing, is_reviewed, unknown, without, has_status, is_shared)

    return list(await asyncio.gather(*[look(kind) for kind in kinds if kind is not kinds.default]))


async def _unknown_fields(client: Client, kind: Kind, *, is_home: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a cluster's definition of a kind lacks of its entry, and what of that nothing works without there.

    Nothing where it publishes no schema.

    Raises:
        KubeError: it does not say.
    """
    schema = await schema_of(client, kind.resource) if isinstance(kind, DeclaredKind) else None
    if schema is None or not isinstance(kind, DeclaredKind):
        return (), ()
    without = map(str, unusable(kind.entry, schema)) if is_home else lacking_on_worker(kind.entry, schema)
    return tuple(map(str, unknown_fields(kind.entry, schema))), tuple(without)


def judge_on_worker(worker: str, facts: KindFacts, *, by: str = "") -> Finding:
    """A kind that a worker does not serve is a reason to choose another one; a missing permission is a failure."""
    name = facts.kind.name
    grant = (
        f"mirror worker add {worker} --context CONTEXT --kinds {_for_option(facts.kind)}, with its other options, too"
    )
    if by:
        grant = f"grant there what {_file(facts.kind, 'worker')} grants, to the account that {by} leads to"
    return _judge(facts, grant, f"; this worker gets no {name}")


def judge_on_management(facts: KindFacts) -> Finding:
    """A kind that is not served here cannot be created by anybody; a missing permission keeps it from being watched.

    What is not placed beside a MultiKueue, or by what its entry says, is a failure, too.
    """
    if not facts.has_status:
        text = f"served as {facts.kind.resource.version}, without a status subresource: nothing can be mirrored"
        definition = f"CustomResourceDefinition {resource_name(facts.kind)}"
        fix = f"add subresources: {{status: {{}}}} to this version of the {definition}"
        return fail(f"kind {facts.kind.name}", text, fix)
    if facts.unusable:
        text = f"served as {facts.kind.resource.version}; none is placed: {'; '.join(facts.unusable)}"
        return fail(f"kind {facts.kind.name}", text, _how_to_correct(facts.kind))
    if facts.is_shared and facts.kind.resource.version in facts.versions and not facts.missing:
        text = f"served as {facts.kind.resource.version}; none is placed: {what_is_here(facts.kind)}"
        return fail(f"kind {facts.kind.name}", text, what_to_do(facts.kind))
    return _judge(facts, _grant_on_management(facts.kind), "; nobody can create any")


def _how_to_correct(kind: Kind) -> str:
    return f"correct the entry of {kind.name} in the setting kinds, or install a release of its controller with it"


def _for_option(kind: Kind) -> str:
    """As ``mirror worker add --kinds`` takes it."""
    return kind.name if kind.name in built_in() else resource_name(kind)


def _grant_on_management(kind: Kind) -> str:
    file = _file(kind, "management")
    return f"kubectl apply -f {file}" if kind.name in built_in() else f"kubectl apply -f FILE, with FILE {file}"


def _file(kind: Kind, side: str) -> str:
    """Which file has the permissions of a kind on a side."""
    folder = f"config/rbac/kinds/{side}-"
    if kind.name in built_in():
        return f"{folder}{kind.name.lower()}.yaml"
    return f"a copy of {folder}jobset.yaml for group {kind.resource.group} and resource {kind.resource.plural}"


def _judge(facts: KindFacts, grant: str, consequence: str) -> Finding:
    kind, wanted = facts.kind, facts.kind.resource.version
    what, resource = f"kind {kind.name}", resource_name(kind)
    missing = f"missing permissions: {', '.join(map(str, facts.missing))}" if facts.missing else ""
    also = f"; {missing}" if missing else ""
    if facts.trouble:
        return fail(what, f"not checked: {facts.trouble}", "mirror worker check shows what is in the way of workers")
    if not facts.versions:
        fix = f"install the CustomResourceDefinition {resource} and its controller, with version {wanted}"
        return warn(what, f"not served: CustomResourceDefinition {resource} is missing{consequence}{also}", fix)
    if wanted not in facts.versions:
        served = clean(", ".join(facts.versions))
        fix = f"install a release of its controller whose CustomResourceDefinition {resource} serves {wanted}"
        return warn(what, f"version {wanted} is not served, only {served}{consequence}{also}", fix)
    if missing:
        return fail(what, f"served as {wanted}; {missing}", grant)
    if facts.unknown:
        text = f"served as {wanted}; {'; '.join(facts.unknown)}{consequence if facts.unusable else ''}"
        return warn(what, text, _how_to_correct(kind))
    if not facts.is_reviewed:
        fix = "needs your permission to create subjectaccessreviews.authorization.k8s.io"
        return warn(what, f"served as {wanted}; the manager's permissions were not checked", fix)
    return ok(what, f"served as {wanted}, all required permissions granted")
