"""Kinds that a MultiKueue of the management cluster may run, too: of those nothing is placed, the others go on (D25).

Some kinds admit but one foreign ``managedBy``, that of MultiKueue. Whether a queue here dispatches objects of them is
in Kueue's AdmissionChecks, which the manager may not read; what it sees is whether MultiKueue's resource is served, as
by any Kueue, and the operator can say otherwise (``besideKueue``). Asked by ``stopped_kinds``, run by ``app``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from mirror.kinds.base import Kind
from mirror.kube.discovery import Sender, served_versions
from mirror.kube.errors import Forbidden, KubeError, Unauthorized
from mirror.kube.resources import Resource
from mirror.telemetry.logs import Log

INTERVAL_SECONDS = 60.0
UNKNOWN_SECONDS = 2.0
"""Between two looks until the cluster has said it once."""
CLUSTERS = Resource("kueue.x-k8s.io", "v1beta2", "multikueueclusters", "MultiKueueCluster", namespaced=False)


class MultiKueue:
    """Whether the management cluster serves it; one for all instances of mirroring in a process."""

    def __init__(self, shared: Sequence[Kind], *, log: Log) -> None:
        """``shared``: the kinds that it may run, too, where it is served."""
        self._shared = {kind.name: kind for kind in shared}
        self._log = log
        self._is_served: bool | None = None
        """None: the cluster has not said yet."""

    def may_run(self, kind: Kind) -> bool:
        """Whether it may run objects of this kind that name us: also as long as nobody knows (D2)."""
        return self._is_served is not False and kind.name in self._shared

    def why(self, kind: Kind) -> str:
        """For people: why none of a kind are placed."""
        if self._is_served is None:
            return f"the management cluster does not say yet whether it serves {CLUSTERS.plural}.{CLUSTERS.group}"
        return why_shared(kind)

    async def look(self, management: Sender) -> bool:
        """Find out whether it is served; where the cluster does not say, what was known stays.

        Returns:
            Whether that has changed.
        """
        try:
            is_served = bool(await served_versions(management, CLUSTERS))
        except (Forbidden, Unauthorized) as error:
            # Who may not see what is served, as anybody may by default, never will.
            if self._is_served is None:
                self._log.warning("not known whether MultiKueue is served", error=error)
            is_served = bool(self._is_served)
        except KubeError as error:
            self._log.debug("not known whether MultiKueue is served", error=error)
            return False
        before, self._is_served = self._is_served, is_served
        if is_served == before:
            return False
        for kind in self._shared.values():
            if is_served:
                self._log.warning("kind not mirrored", kind=kind.name, because=why_shared(kind))
            elif before:
                self._log.info("kind mirrored again", kind=kind.name)
        return True

    async def run(self, management: Sender, look_again: Callable[[Kind], None]) -> None:
        """Look until cancelled.

        Args:
            management: the cluster.
            look_again: at the sources of a kind that is stopped now, or no longer.
        """
        while True:
            await asyncio.sleep(INTERVAL_SECONDS if self._is_served is not None else UNKNOWN_SECONDS)
            if await self.look(management):
                for kind in self._shared.values():
                    look_again(kind)


def why_shared(kind: Kind) -> str:
    """For people: why none of a kind are placed here, and what to do."""
    return f"{what_is_here(kind)}: {what_to_do(kind)}"


def what_is_here(kind: Kind) -> str:
    """For people: what may run objects of a kind."""
    return (
        f"a Kueue on the management cluster serves {CLUSTERS.plural}.{CLUSTERS.group}, and its MultiKueue may run"
        f" {kind.name}s with {kind.managed_by_field} {kind.managed_by_value}, too"
    )


def what_to_do(kind: Kind) -> str:
    """For the operator."""
    return (
        f"if no queue there has an admission check of MultiKueue, set besideKueue: true in the entry of {kind.name} in"
        " the setting kinds; if one has, leave the kind to MultiKueue"
    )
