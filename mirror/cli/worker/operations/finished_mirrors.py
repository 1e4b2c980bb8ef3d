"""Finished mirrors of a worker that is drained or removed: deleted, where nothing is lost by it and they are ours (D8).

A mirror is deleted only if all of this is so: its source exists on the management cluster, is
recorded on this worker, and has its terminal status stored; the mirror is in the namespace that belongs to the
source's, has its name, both our labels (this management cluster's origin, that source's uid), and has ended, too.
The delete carries the mirror's uid. Everything else stays, and is counted by reason. All kinds of the table are looked
at, each by its own rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from mirror.cli.worker.operations.checking.probing import LOOPBACK, connected
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster, Site
from mirror.kinds import registry
from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.errors import Conflict, NotFound
from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.workers.inventory import Entry
from mirror.workers.spec import BadSecret, read_spec


@dataclass(slots=True)
class Outcome:
    """What became of the mirrors that were looked at."""

    deleted: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    """Finished ones that stay, by reason."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose mirrors are looked for, and where."""

    worker: str
    origin: str
    """The label of this management cluster's mirrors."""
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
async def registered_site(secret: Object, allow: Mapping[str, bool]) -> AsyncIterator[Site]:
    """The worker as its Secret reaches it, with the manager's account there.

    Raises:
        ClusterError: the Secret or its kubeconfig is refused.
    """
    name = secret.metadata.name
    # A command runs where the operator is, whose own machine is no secret to them. All else in a Secret stays refused.
    allow = {**LOOPBACK, **allow}
    async with AsyncExitStack() as stack:
        try:
            kubeconfig = check_kubeconfig(read_spec(secret).kubeconfig, allow)
            client, _ = await stack.enter_async_context(connected(name, kubeconfig, allow))
        except (BadSecret, KubeconfigRefused) as error:
            raise ClusterError(f"the Secret of worker {name} is rejected: {error}") from error
        yield Site(client, f"worker {name}")


async def delete_finished(home: ManagementCluster, worker: Site, name: str, *, origin: str) -> Outcome:
    """Delete the finished mirrors whose terminal status is stored.

    Args:
        home: where the sources are; they are read first, so that no end is taken for stored that is not.
        worker: the cluster, with any account that may list and delete mirrors there.
        name: of the worker.
        origin: the manager's setting; empty for its default.

    Raises:
        ClusterError: a cluster is not the recorded one, cannot be reached, or does not allow it.
    """
    entry = (await home.inventory()).entry(name)
    await check_recorded(worker, name, entry)
    scope = Scope(name, origin or await home.site.uid(), entry.namespace_prefix)
    stored = await _stored_ends(home, scope.worker)
    outcome = Outcome()
    for kind_name, namespace in sorted({(key.kind, key.namespace) for key in stored}):
        kind, there = registry.BUILT_IN[kind_name], scope.prefix + namespace
        async for mirror in worker.each(kind.resource, namespace=there, labels=names.SOURCE_UID):
            uid = stored.get(SourceKey(kind_name, namespace, mirror.metadata.name))
            why_kept = _why_kept(kind, mirror, uid, scope)
            if why_kept is None:
                outcome.deleted += await _delete(worker, kind, mirror)
            elif why_kept:
                outcome.kept[why_kept] += 1
    return outcome


async def _stored_ends(home: ManagementCluster, worker: str) -> dict[SourceKey, str]:
    """The uids of sources that ended on this worker, with their terminal status stored."""
    found = {}
    async for kind, source in home.jobs():
        summary, meta = kind.summary(source), source.metadata
        if summary.placed == worker and summary.is_finished:
            found[SourceKey(kind.name, meta.namespace, meta.name)] = meta.uid
    return found


def _why_kept(kind: Kind, mirror: Object, source_uid: str | None, scope: Scope) -> str | None:
    """Why a mirror stays; None if it goes, empty if it is none of ours to count."""
    if mirror.labels.get(names.ORIGIN) != scope.origin:
        is_of_source = source_uid is not None and mirror.labels.get(names.SOURCE_UID) == source_uid
        return f"label {names.ORIGIN} is not {scope.origin} (see --origin)" if is_of_source else ""
    if not kind.summary(mirror).is_finished:
        return ""
    if source_uid is None or mirror.labels.get(names.SOURCE_UID) != source_uid:
        return "no source on the management cluster has its terminal status stored"
    return None


async def _delete(worker: Site, kind: Kind, mirror: Object) -> int:
    """1 if it was deleted, 0 if it was gone or is another by now."""
    meta = mirror.metadata
    wanted = requests.delete(kind.resource, meta.name, namespace=meta.namespace, uid=meta.uid)
    try:
        await worker.send(wanted, kind.resource, name=meta.name, namespace=meta.namespace)
    except NotFound:
        return 0
    except ClusterError as trouble:
        if isinstance(trouble.__cause__, Conflict):
            return 0
        raise
    return 1
