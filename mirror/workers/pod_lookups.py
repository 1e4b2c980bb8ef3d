"""Whose the objects are that a worker's warnings are about: no event carries labels or owners (D22). Used by ``pods``.

Pods and what makes pods are asked for one by one, each in its own line, so that neither keeps the other waiting. What
the worker does not let us read is not asked for again for a while.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, KubeError, NotFound
from mirror.kube.objects import Meta
from mirror.kube.requests import Rank
from mirror.kube.resources import PODS, Resource
from mirror.model import names
from mirror.runtime.clock import Clock
from mirror.telemetry.logs import Log
from mirror.workers import pod_trouble
from mirror.workers.pod_events import Warned
from mirror.workers.pod_makers import PodMakers
from mirror.workers.pod_owners import read_metadata

LOOKS_WAITING = 100
"""So many pods, and so many of what makes pods, wait to be asked for; more warnings of unknown ones are left out."""
MOST_OTHERS = 5_000
"""So many objects that are not ours are remembered: each is asked for once, however often it is warned of."""
REFUSED_SECONDS = 300.0
"""What may not be read is not asked for again for so long: somebody may grant it."""
AGAIN_SECONDS = 1.0
"""After an error, and between two looks whether the mirrors are known."""


@dataclass(frozen=True, slots=True)
class LookupHost:
    """What looking up needs of the watches of pods."""

    clock: Clock
    origin: str
    """The management cluster's, by whose label pods of mirrors are found."""
    makers: PodMakers
    are_mirrors_synced: Callable[[], bool]
    source_of: Callable[[Warned], str | None]
    """Whose it is, as far as that is known without asking."""
    on_found: Callable[[str, Warned], None]
    """Called with the uid of the source whose it is."""
    on_error: Callable[[KubeError], None]


class _StillRefused(Exception):
    """It may not be read, as was found out a short while ago."""


class PodLookups:
    """Of one worker.

    Invariants: ``_others`` holds uids of what is not ours, ``_refused`` until when (monotonic) what may not be read is
    not asked for, by resource and namespace, and by uid; each holds ``MOST_OTHERS`` at most.
    """

    def __init__(self, host: LookupHost, *, log: Log) -> None:
        self._host = host
        self._log = log
        self._pods: asyncio.Queue[Warned] = asyncio.Queue(LOOKS_WAITING)
        self._makers: asyncio.Queue[Warned] = asyncio.Queue(LOOKS_WAITING)
        self._others: OrderedDict[str, None] = OrderedDict()
        self._refused: OrderedDict[str | tuple[Resource, str], float] = OrderedDict()
        self.asked = 0
        """How many warnings have been taken in so far."""

    def is_of_others(self, uid: str) -> bool:
        """Whether it was found out that an object is not ours."""
        return uid in self._others

    def ask(self, warned: Warned) -> None:
        """Find out whose it is, unless too many wait, it can be nobody's mirror's, or it may not be read."""
        resource, queue = self._resource_of(warned), self._pods if _is_of_pod(warned) else self._makers
        if resource is None or queue.full() or self._is_refused(resource, warned):
            return
        queue.put_nowait(warned)
        self.asked += 1

    async def wait_until_empty(self) -> None:
        """Return once all that was asked for so far is found out, or cannot be."""
        await self._pods.join()
        await self._makers.join()

    async def run(self, client: Callable[[], Client]) -> None:
        """Ask for what is not known, until cancelled."""
        async with asyncio.TaskGroup() as scope:
            scope.create_task(self._work(self._pods, partial(self._look_up_pod, client)), name="lookups of pods")
            scope.create_task(self._work(self._makers, partial(self._look_up_maker, client)), name="lookups of makers")

    async def _work(self, queue: asyncio.Queue[Warned], look_up: Callable[[Warned], Awaitable[None]]) -> None:
        while True:
            warned = await queue.get()
            try:
                await self._look_up(warned, look_up)
            finally:
                queue.task_done()

    async def _look_up(self, warned: Warned, look_up: Callable[[Warned], Awaitable[None]]) -> None:
        uid, resource = warned.about.uid, self._resource_of(warned)
        if (source := self._host.source_of(warned)) is not None:
            self._host.on_found(source, warned)  # it was looked up since
            return
        if uid in self._others or resource is None or self._is_refused(resource, warned):
            return
        try:
            await look_up(warned)
        except NotFound:
            self._pass_over(uid)
        except _StillRefused:
            self._put_off(uid)
        except KubeError as error:
            self._log.debug("not read whose it is", kind=warned.about.kind, error=error)
            self._host.on_error(error)
            if isinstance(error, Forbidden):
                self._put_off(uid)
            else:
                await asyncio.sleep(AGAIN_SECONDS)

    async def _look_up_pod(self, client: Callable[[], Client], warned: Warned) -> None:
        about = warned.about
        request = requests.get(PODS, about.name, namespace=about.namespace)
        try:
            pod = await client().send_object(request.in_line(Rank.LAST))  # after all that mirrors need
        except Forbidden:
            self._put_off((PODS, about.namespace))
            raise
        is_ours = pod.metadata.uid == about.uid and pod.labels.get(names.ORIGIN) == self._host.origin
        source = pod.labels.get(names.SOURCE_UID) if is_ours else None
        trouble, status = pod_trouble.warned_of(warned.reason or "", warned.text), bytes(pod.status)
        if source is None:
            self._pass_over(about.uid)
        elif source and trouble and pod_trouble.is_short(source) and pod_trouble.may_hold(trouble, status):
            self._host.on_found(source, warned)

    async def _look_up_maker(self, client: Callable[[], Client], warned: Warned) -> None:
        async def get(resource: Resource, namespace: str, name: str) -> Meta | None:
            if self._is_put_off((resource, namespace)):
                raise _StillRefused
            request = requests.get(resource, name, namespace=namespace).metadata_only()
            try:
                return read_metadata(await client().send(request.in_line(Rank.LAST)))
            except Forbidden:
                self._put_off((resource, namespace))
                raise

        # What belongs to none of the mirrors that are known may belong to another.
        while not self._host.are_mirrors_synced():  # noqa: ASYNC110 - nobody tells when a kind is begun and listed
            await asyncio.sleep(AGAIN_SECONDS)
        if (source := self._host.source_of(warned) or await self._host.makers.source_of(warned.about, get)) is not None:
            self._host.on_found(source, warned)
        else:
            self._pass_over(warned.about.uid)

    def _resource_of(self, warned: Warned) -> Resource | None:
        return PODS if _is_of_pod(warned) else self._host.makers.resource_of(warned.about)

    def _is_refused(self, resource: Resource, warned: Warned) -> bool:
        return self._is_put_off(warned.about.uid) or self._is_put_off((resource, warned.about.namespace))

    def _is_put_off(self, what: str | tuple[Resource, str]) -> bool:
        return self._refused.get(what, 0.0) > self._host.clock.monotonic()

    def _put_off(self, what: str | tuple[Resource, str]) -> None:
        self._refused.pop(what, None)
        self._refused[what] = self._host.clock.monotonic() + REFUSED_SECONDS
        if len(self._refused) > MOST_OTHERS:
            self._refused.popitem(last=False)

    def _pass_over(self, uid: str) -> None:
        """Not ours, or gone: what is warned of it from now on is of no interest."""
        self._others[uid] = None
        if len(self._others) > MOST_OTHERS:
            self._others.popitem(last=False)


def _is_of_pod(warned: Warned) -> bool:
    return warned.about.kind == "Pod"
