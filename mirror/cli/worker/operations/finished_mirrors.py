"""What is left on a worker that is drained or removed: mirrors deleted where nothing is lost by it and they are ours.

A mirror is deleted if it carries this management cluster's origin and either

- its source exists, is recorded on this worker and has its terminal status stored, the mirror has its name, uid label
  and namespace, and has ended, too (D8); or
- its source is gone: a live read says 404 or another uid (D10), and not more than a sweep may are so.

The delete carries the mirror's uid. Everything else of ours stays, and is named with the reason. All kinds of the table
are looked at, each by its own rules.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from mirror.cli.worker.operations.checking.probing import LOOPBACK, connected
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster, Site
from mirror.cli.worker.operations.worker_objects import Unusable, WorkerObject, read_connection
from mirror.decide.identity import is_of_another_cluster
from mirror.decide.mirror_verdict import is_too_many
from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.errors import Conflict, Forbidden, NotFound
from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.workers.inventory import Entry


@dataclass(frozen=True, slots=True)
class Kept:
    """A mirror of ours that stays."""

    mirror: str
    """As text: ``Job team-a/train``."""
    reason: str

    def __str__(self) -> str:
        return f"{self.mirror}: {self.reason}"


@dataclass(slots=True)
class Outcome:
    """What became of the mirrors that were looked at."""

    deleted: int = 0
    kept: list[Kept] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose mirrors are looked for, and where."""

    worker: str
    origin: str
    """The label of this management cluster's mirrors."""
    management_uid: str
    """What these are labelled with, too, where the origin is a setting."""
    prefix: str
    """What mirrors' namespaces begin with."""


async def check_recorded(worker: Site, name: str, entry: Entry) -> None:
    """Whether this is the cluster that the worker is (D19).

    Raises:
        ClusterError: it is another one, or the manager has not recorded which one it is.
    """
    found = await worker.uid()
    if entry.uid != found:
        known = f"worker {name} is cluster {entry.uid}" if entry.uid else f"no cluster is recorded for worker {name}"
        raise ClusterError(f"{known}, and {worker.title} is {found}: nothing is cleaned up")


@asynccontextmanager
async def registered_site(
    home: ManagementCluster, worker: WorkerObject, allow: Mapping[str, bool]
) -> AsyncIterator[Site]:
    """The worker as what registers it reaches it, with the manager's account there.

    Raises:
        ClusterError: its kubeconfig may not be read, or is refused.
    """
    name = worker.worker
    # A command runs where the operator is, whose own machine is no secret to them. All else in a Secret stays refused.
    allow = {**LOOPBACK, **allow}
    async with AsyncExitStack() as stack:
        try:
            spec = await read_connection(home, worker)
            kubeconfig = check_kubeconfig(spec.kubeconfig, allow)
            client, _ = await stack.enter_async_context(connected(name, kubeconfig, allow))
        except (Unusable, KubeconfigRefused) as error:
            what = worker.by or f"the Secret of worker {name}"
            raise ClusterError(f"{what} is rejected: {error}") from error
        yield Site(client, f"worker {name}")


async def delete_finished(home: ManagementCluster, worker: Site, name: str, *, origin: str) -> Outcome:
    """Delete the mirrors that have a right to go.

    Args:
        home: where the sources are; they are read first, so that no end is taken for stored that is not.
        worker: the cluster, with any account that may list and delete mirrors there.
        name: of the worker.
        origin: the manager's setting; empty: as the manager has recorded it.

    Raises:
        ClusterError: a cluster is not the recorded one, cannot be reached, or does not allow it.
    """
    entry = (await home.inventory()).entry(name)
    await check_recorded(worker, name, entry)
    scope = Scope(name, origin or await home.origin(), await home.site.uid(), entry.namespace_prefix)
    sources = await _sources(home)
    recorded = {source.mirror_uid: source for source in sources.values() if source.mirror_uid}
    outcome, orphans, seen = Outcome(), list[tuple[Kind, Object]](), 0
    for kind in await home.kinds():
        namespaces = {scope.prefix + source.key.namespace for source in sources.values() if source.worker == name}
        async for mirror in _mirrors(worker, kind, sorted(namespaces)):
            # Which source has recorded it counts more than its labels, which others can change (D1).
            source = recorded.get(mirror.metadata.uid) or sources.get(mirror.labels.get(names.SOURCE_UID, ""))
            if source is None and is_of_another_cluster(mirror.labels, scope.management_uid):
                continue  # with the same origin, by mistake
            seen += 1
            if source is None and mirror.labels.get(names.ORIGIN) == scope.origin:
                orphans.append((kind, mirror))
                continue
            reason = _why_kept(kind, mirror, source, scope)
            if reason is not None:
                outcome.kept += [Kept(_named(kind, mirror), reason)] if reason else []
            else:
                await _delete(worker, kind, mirror, outcome)
    await _delete_orphans(home, worker, scope, orphans, outcome, seen=seen)
    return outcome


async def may_have_any(home: ManagementCluster, worker: str) -> bool:
    """Whether mirrors of ours may be on a worker, as far as the management cluster knows.

    A mirror is created only after it is written down which cluster the worker is (D19) and that its source goes there
    (D5): where neither is recorded there is none.

    Raises:
        ClusterError: the record or sources may not be read.
    """
    if (await home.inventory()).entry(worker).uid:
        return True
    return any(source.worker == worker for source in (await _sources(home)).values())


async def ended_on(home: ManagementCluster, worker: str) -> list[str]:
    """Name the sources that ended on this worker and exist: their mirrors may be there.

    Raises:
        ClusterError: sources may not be listed.
    """
    found = (source for source in (await _sources(home)).values() if source.worker == worker and source.is_finished)
    return sorted(str(source.key) for source in found)


@dataclass(frozen=True, slots=True)
class _Source:
    """As much of a source as is needed to judge its mirror."""

    key: SourceKey
    worker: str
    is_finished: bool
    mirror_uid: str
    """As it has recorded it; empty: it has not."""


async def _sources(home: ManagementCluster) -> dict[str, _Source]:
    """All objects of all kinds, by uid."""
    found = {}
    async for kind, source in home.jobs():
        summary, meta = kind.summary(source), source.metadata
        key = SourceKey(kind.name, meta.namespace, meta.name)
        found[meta.uid] = _Source(key, summary.placed or "", summary.is_finished, summary.mirror_uid or "")
    return found


async def _mirrors(worker: Site, kind: Kind, namespaces: Sequence[str]) -> AsyncIterator[Object]:
    """All that may be mirrors; where that is not allowed, those in the namespaces of sources."""
    try:
        found = [one async for one in worker.each(kind.resource, labels=names.SOURCE_UID)]
    except ClusterError as trouble:
        if not isinstance(trouble.__cause__, Forbidden):
            raise
        found = [
            one
            for namespace in namespaces
            async for one in worker.each(kind.resource, namespace=namespace, labels=names.SOURCE_UID)
        ]
    for one in found:
        yield one


def _why_kept(kind: Kind, mirror: Object, source: _Source | None, scope: Scope) -> str | None:
    """Why a mirror stays; None if it goes, empty if it is none of ours."""
    meta = mirror.metadata
    if source is None:
        return ""
    is_its = (source.key.kind, scope.prefix + source.key.namespace, source.key.name) == (
        kind.name,
        meta.namespace,
        meta.name,
    )
    if mirror.labels.get(names.ORIGIN) != scope.origin:
        return f"label {names.ORIGIN} is not {scope.origin} (see --origin)" if is_its else ""
    if not is_its:
        return f"it is labelled as the mirror of {source.key}, and has not its name and namespace"
    if source.mirror_uid not in ("", meta.uid):
        return f"{source.key} has recorded another mirror"
    if source.worker != scope.worker:
        return f"its source is recorded on worker {source.worker}" if source.worker else "its source is not placed"
    if not source.is_finished:
        return "no terminal status is stored on its source"
    return None if kind.summary(mirror).is_finished else "it has not ended, though its source has"


async def _delete_orphans(
    home: ManagementCluster,
    worker: Site,
    scope: Scope,
    orphans: Sequence[tuple[Kind, Object]],
    outcome: Outcome,
    *,
    seen: int,
) -> None:
    """Delete mirrors whose source is gone, as the manager's sweep would, and within its limit (D10)."""
    if is_too_many(len(orphans), seen):
        reason = f'its source is gone, as are {len(orphans)} of {seen}: see "A halted sweep" in docs/workers.md'
        outcome.kept += [Kept(_named(kind, mirror), reason) for kind, mirror in orphans]
        return
    for kind, mirror in orphans:
        meta = mirror.metadata
        if not meta.namespace.startswith(scope.prefix):
            outcome.kept.append(Kept(_named(kind, mirror), f"its namespace has not the prefix {scope.prefix}"))
            continue
        namespace = meta.namespace.removeprefix(scope.prefix)
        try:
            found = await home.site.find(kind.resource, meta.name, namespace=namespace)
        except ClusterError as trouble:  # what is not served is not gone
            outcome.kept.append(Kept(_named(kind, mirror), str(trouble)))
            continue
        if found is None or found.metadata.uid != mirror.labels.get(names.SOURCE_UID):
            await _delete(worker, kind, mirror, outcome)
        else:
            outcome.kept.append(Kept(_named(kind, mirror), "its source was created in the meantime"))


async def _delete(worker: Site, kind: Kind, mirror: Object, outcome: Outcome) -> None:
    """Delete one; one that is gone, or another by now, counts as neither deleted nor kept."""
    meta = mirror.metadata
    wanted = requests.delete(kind.resource, meta.name, namespace=meta.namespace, uid=meta.uid)
    try:
        await worker.send(wanted, kind.resource, name=meta.name, namespace=meta.namespace)
    except NotFound:
        return
    except ClusterError as trouble:
        if not isinstance(trouble.__cause__, Conflict):
            outcome.kept.append(Kept(_named(kind, mirror), str(trouble)))
        return
    outcome.deleted += 1


def _named(kind: Kind, mirror: Object) -> str:
    return f"{kind.name} {mirror.metadata.namespace}/{mirror.metadata.name}"
