"""Several informers whose stores one process works from: run together, listed anew together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from mirror.kube.errors import KubeError, refusal_of
from mirror.runtime.discovering import Discovery
from mirror.runtime.informer import Informer
from mirror.runtime.supervise import supervise
from mirror.telemetry.logs import Log


class WatchRefusals:
    """What the server does not let us watch, a missing permission above all: logged once, and kept for readiness."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._because: dict[str, str] = {}

    def on_trouble(self, what: str, error: KubeError) -> None:
        """A list or watch of it has failed. An outage is no refusal: it shows elsewhere, and ends by itself."""
        because = refusal_of(error)
        if because and because != self._because.get(what):
            self._because[what] = because
            self._log.warning("not watched", what=what, because=because)

    def on_listed(self, what: str) -> None:
        """A list of it was whole."""
        self._because.pop(what, None)

    @property
    def because(self) -> str:
        """Of the first that is refused; empty: none is."""
        return next((f"{what} not watched: {because}" for what, because in self._because.items()), "")


class Informers:
    """What a controller watches, by what it is called in logs."""

    def __init__(
        self,
        informers: Mapping[str, Informer],
        *,
        log: Log,
        on_restart: Callable[[str], None] | None = None,
        refusals: WatchRefusals | None = None,
        discovery: Discovery | None = None,
    ) -> None:
        """``discovery``: what informers of resources that are not served wait for."""
        self._informers = dict(informers)
        # How many do not know yet what there is: whether any is asked with each look at an object, and there is one of
        # each kind. Invariant: those whose ``is_synced`` is False, since each reports when that changes.
        self._unsynced = sum(not informer.is_synced for informer in self)
        for informer in self:
            informer.report_sync_to(self._note_sync)
        self._discovery = discovery
        self._refusals = refusals
        self._log = log
        self._on_restart = on_restart
        self._relist = asyncio.Event()

    def __iter__(self) -> Iterator[Informer]:
        return iter(self._informers.values())

    def __len__(self) -> int:
        return len(self._informers)

    @property
    def is_synced(self) -> bool:
        """Whether all of them know what there is."""
        return not self._unsynced

    def _note_sync(self, is_synced: bool) -> None:
        self._unsynced += -1 if is_synced else 1

    @property
    def refused_because(self) -> str:
        """What may not be watched, and why; empty: all may, or nobody asked to know."""
        return self._refusals.because if self._refusals is not None else ""

    async def wait_until_synced(self) -> None:
        for informer in self:
            await informer.wait_until_synced()

    async def run(self) -> None:
        """Keep the stores, until cancelled."""
        while True:
            self._relist.clear()
            async with asyncio.TaskGroup() as scope:
                watches = []
                for what, informer in self._informers.items():
                    name = f"watch {what}"
                    watch = supervise(name, informer.run, log=self._log, on_restart=self._on_restart)
                    watches.append(scope.create_task(watch, name=name))
                if self._discovery is not None:
                    looks = supervise("discovery", self._discovery.run, log=self._log, on_restart=self._on_restart)
                    watches.append(scope.create_task(looks, name="discovery"))
                await self._relist.wait()
                for task in watches:
                    task.cancel()
            for informer in self:
                informer.expire()  # only now can none of them have taken another version

    def nudge(self) -> None:
        """See ``Informer.nudge``."""
        for informer in self:
            informer.nudge()
        if self._discovery is not None:
            self._discovery.look_soon()

    def list_anew(self) -> None:
        """Whoever led until now may have written what a silent watch of ours has not brought (D2)."""
        if all(informer.has_just_begun for informer in self):
            return
        for informer in self:
            informer.expire()
        self._relist.set()
