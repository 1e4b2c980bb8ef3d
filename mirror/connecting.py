"""Connections as the settings have them, each with the permit that its writes look at (D18, D28)."""

from __future__ import annotations

from mirror.kube.client import Client
from mirror.kube.connect import connect_management, connect_worker, limiter_of
from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.kube.limits import Limiter
from mirror.kube.permits import WritePermit
from mirror.model.endings import CannotStart
from mirror.settings.schema import Limits, Settings
from mirror.telemetry.metrics import Metrics

_UNLIMITED = Limits(qps=0.0, burst=1)


class Connections:
    """Makes them. Make it in the running loop."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.limiter = limiter_of(settings.management)
        """What all clients of the management cluster share: of several managers each has its part (S12)."""
        self._metrics = metrics

    async def management(self, permit: WritePermit | None) -> Client:
        """A client of the management cluster; without a permit nothing is held back.

        Raises:
            CannotStart: its kubeconfig is refused.
        """
        return await self._management(self.limiter, permit)

    async def leases(self) -> Client:
        """A client of the management cluster for Leases alone, which no limit makes late; raises as ``management``."""
        return await self._management(_UNLIMITED, None)

    async def _management(self, limits: Limits | Limiter, permit: WritePermit | None) -> Client:
        path = self.settings.kubeconfig
        try:
            return await connect_management(path, limits=limits, observer=self._metrics, permit=permit)
        except KubeconfigRefused as error:
            raise CannotStart(f"kubeconfig: {error}") from error

    async def worker(self, name: str, kubeconfig: bytes, permit: WritePermit | None) -> Client:
        """A client of a worker; raises as ``workers.registry.Connector``."""
        allow, limits = self.settings.workers.allow, self.settings.workers
        checked = check_kubeconfig(kubeconfig, allow)
        return await connect_worker(name, checked, allow=allow, limits=limits, observer=self._metrics, permit=permit)
