"""D20: two Job controllers on one cluster must not happen. Notices that kube-controller-manager's runs, too.

The server does not know who manages what (Q28), but it notes who wrote a status last: ``metadata.managedFields``. A few
Jobs that somebody changed are asked for that, seldom while nothing is found. What counts is a write of a while after we
took the Lease, on a Job that the built-in controller would sync: what an earlier kube-controller-manager has left
behind, or still had under way when it was stopped, does not.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from mirror.batch import views
from mirror.kube import requests
from mirror.kube.errors import KubeError, NotFound
from mirror.kube.objects import JUNK, Object
from mirror.kube.requests import Rank
from mirror.kube.resources import JOBS
from mirror.model import names
from mirror.model.endings import MustEnd
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change
from mirror.telemetry.logs import Log

RIVAL = "kube-controller-manager"
HANDOVER_SECONDS = 5.0
"""So long after we took the Lease a stopped controller's last writes may still arrive."""
MOST_SUSPECTS = 3
FIRST_LOOK_SECONDS = 2.0
LONGEST_LOOK_SECONDS = 20.0
ENOUGH_WRITES = 3
ENOUGH_JOBS = 2


class ControllerConflict(MustEnd):
    """Another Job controller keeps writing statuses; ours does nothing more."""


class Asker(Protocol):
    """A cluster's client, as far as it is needed here."""

    @property
    def clock_offset_seconds(self) -> float | None: ...

    async def send(self, request: requests.Request) -> bytes: ...


class Evidence(msgspec.Struct, frozen=True):
    """A rival's write to the status of an unmanaged Job."""

    uid: str
    job: str
    at: datetime


def evidence_in(job: dict[str, Any], *, after: datetime) -> Evidence | None:
    """The rival's newest status write to this Job, if it is a Job that it syncs and a later write."""
    metadata, spec = views.mapping(job.get("metadata")), views.mapping(job.get("spec"))
    if spec.get("managedBy") not in (None, names.BUILT_IN_MANAGED_BY):
        return None
    entries = [views.mapping(entry) for entry in views.items(metadata.get("managedFields"))]
    written = [
        entry["time"] for entry in entries if entry.get("manager") == RIVAL and entry.get("subresource") == "status"
    ]
    newest = max((at for at in map(_time, written) if at is not None), default=None)
    if newest is None or newest <= after:
        return None
    name = f"{views.text(metadata.get('namespace'))}/{views.text(metadata.get('name'))}"
    return Evidence(views.text(metadata.get("uid")), name, newest)


def is_enough(found: set[Evidence]) -> bool:
    """Several writes, and to several Jobs: it keeps writing."""
    return len(found) >= ENOUGH_WRITES and len({one.uid for one in found}) >= ENOUGH_JOBS


class Rivals:
    """Watches out while this process leads."""

    def __init__(self, client: Asker, *, clock: Clock, log: Log) -> None:
        self._client = client
        self._clock = clock
        self._log = log
        self._is_watching = False
        self._suspects: OrderedDict[tuple[str, str], None] = OrderedDict()

    def on_job(self, old: Object | None, new: Object | None, change: Change) -> None:
        """A Job's status changed. Our own writes come this way, too: whose it was, only the server can tell."""
        if not self._is_watching or old is None or new is None or bytes(old.status) == bytes(new.status):
            return
        self._suspects[new.metadata.namespace, new.metadata.name] = None
        self._suspects.move_to_end((new.metadata.namespace, new.metadata.name))
        if len(self._suspects) > MOST_SUSPECTS:
            self._suspects.popitem(last=False)

    async def watch(self) -> None:
        """Look until cancelled.

        Raises:
            ControllerConflict: kube-controller-manager keeps writing statuses.
        """
        self._suspects.clear()
        self._is_watching = True
        began = self._clock.now()
        found: set[Evidence] = set()
        pause_seconds = FIRST_LOOK_SECONDS
        try:
            while True:
                await asyncio.sleep(pause_seconds)
                offset_seconds = (self._client.clock_offset_seconds or 0.0) + HANDOVER_SECONDS
                fresh = await self._look(began + timedelta(seconds=offset_seconds))
                found |= fresh
                if is_enough(found):
                    raise ControllerConflict(_complaint(found))
                pause_seconds = FIRST_LOOK_SECONDS if fresh else min(LONGEST_LOOK_SECONDS, pause_seconds * 2)
        finally:
            self._is_watching = False

    async def _look(self, after: datetime) -> set[Evidence]:
        found = set()
        suspects, self._suspects = list(self._suspects), OrderedDict()
        for namespace, name in suspects:
            request = requests.get(JOBS, name, namespace=namespace).in_line(Rank.LAST)
            try:
                job = msgspec.json.decode(await self._client.send(request))
            except NotFound:
                continue
            except (KubeError, *JUNK) as error:
                self._log.debug("cannot look who writes a status", job=f"{namespace}/{name}", error=error)
                continue
            if (one := evidence_in(job, after=after)) is not None:
                self._log.warning("another controller wrote the status of a job", job=one.job, manager=RIVAL)
                found.add(one)
        return found


def _complaint(found: set[Evidence]) -> str:
    jobs = sorted({one.job for one in found})
    return (
        f"{RIVAL} keeps writing the statuses of jobs that have no managedBy (such as {', '.join(jobs[:3])}): "
        f"two Job controllers must not work on one cluster; end this one, or start {RIVAL} with "
        "--controllers=*,-job-controller"
    )


def _time(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
