"""An installation that was moved to another namespace follows what it had placed: ``mirror take-over`` (D2).

What a manager may not see from its own namespace is looked at here, with the operator's permissions: whether the other
one has stopped, and whether a worker's name means the same cluster to both. The second is what keeps a Job from running
twice: a mirror has the name of its source, so one cluster has one, whoever creates it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from mirror.batch import times
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.kinds.asking import manager_of
from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.errors import Conflict, NotFound
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import LEASES
from mirror.model import names
from mirror.model.text import clean
from mirror.workers.inventory import Entry

LONGEST_LEASE_SECONDS = 60.0
"""A Lease that was not renewed for as long is nobody's, unless it says that it lasts longer."""
MOST_NAMED = 50


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: float | None = None
    renew_time: str | None = None


@dataclass
class Outcome:
    """What became of the Jobs of the other manager."""

    taken: int = 0
    kept: list[str] = field(default_factory=list)
    """Each that was not, and why; the first of them."""
    left: int = 0
    """How many those are."""

    def keep(self, source: str, why: str) -> None:
        """Leave one."""
        self.left += 1
        if self.left <= MOST_NAMED:
            self.kept.append(f"{source}: {why}")


async def take_over(
    home: ManagementCluster, former: str, *, same_workers: bool = False, dry_run: bool = False
) -> Outcome:
    """Mark the unfinished Jobs that the manager in namespace ``former`` has placed as those of the one at home.

    Args:
        home: the manager that follows them from then on.
        former: the namespace of the one that had placed them.
        same_workers: a person's word that a worker's name means one cluster to both, where the record is gone.
        dry_run: nothing is changed.

    Raises:
        ClusterError: the other manager runs, or something may not be read.
    """
    await _check_has_stopped(home, former)
    ours = await home.inventory()
    theirs = await ManagementCluster(home.site, former).inventory()
    outcome = Outcome()
    async for kind, found in home.jobs():
        summary = kind.summary(found)
        if manager_of(kind, found) != former or summary.placed is None or summary.is_finished:
            continue
        if why := obstacle(ours.entry(summary.placed), theirs.entry(summary.placed), same_workers=same_workers):
            what = f"{kind.name} {found.metadata.namespace}/{found.metadata.name}"
            outcome.keep(what, f"worker {summary.placed} {why}")
        elif dry_run or await _mark(home, kind, found):
            outcome.taken += 1
    return outcome


def obstacle(here: Entry, there: Entry, *, same_workers: bool) -> str:
    """Why a worker, as both managers have recorded it, is not known to be one to both; empty: it is."""
    if not here.uid:
        return "was never reached from here: see mirror worker list"
    if there.uid and here.uid != there.uid:
        return "is another cluster here: register the one that it was under this name"
    if there.uid and here.namespace_prefix != there.namespace_prefix:
        return f"has another {names.NAMESPACE_PREFIX} here: set it to {there.namespace_prefix!r}"
    if not there.uid and not same_workers:
        return "has no record there that says which cluster it was: if it is the same, use --same-workers"
    return ""


async def _check_has_stopped(home: ManagementCluster, former: str) -> None:
    """Whether nobody holds the other manager's Lease."""
    found = await home.site.find(LEASES, names.LEASE, namespace=former)
    holder = holder_of(found, datetime.now(UTC)) if found is not None else ""
    if holder:
        raise ClusterError(
            f"the manager in namespace {former} runs: {clean(holder)} holds Lease {former}/{names.LEASE}; uninstall it "
            f"first, or scale it to 0 (if it was killed: rerun in a minute)"
        )


def holder_of(lease: Object, now: datetime) -> str:
    """Who holds a Lease; empty: nobody, or nobody any more."""
    try:
        spec = msgspec.json.decode(lease.spec, type=_LeaseSpec)
        renewed = times.seconds(spec.renew_time or "")
    except (*JUNK, times.BadTime):
        return ""
    lasts = max(LONGEST_LEASE_SECONDS, spec.lease_duration_seconds or 0.0)
    return (spec.holder_identity or "") if now.timestamp() - renewed < lasts else ""


async def _mark(home: ManagementCluster, kind: Kind, found: Object) -> bool:
    """Whether it is marked; not where it was deleted meanwhile."""
    meta = found.metadata
    metadata: dict[str, Any] = {"uid": meta.uid, "annotations": {names.MANAGER: home.namespace}}
    wanted = requests.merge_patch(kind.resource, meta.name, {"metadata": metadata}, namespace=meta.namespace)
    try:
        await home.site.send(wanted, kind.resource, name=meta.name, namespace=meta.namespace)
    except NotFound:
        return False
    except ClusterError as trouble:
        if isinstance(trouble.__cause__, Conflict):
            return False  # another one has its name by now
        raise
    return True
