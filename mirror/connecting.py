"""Connections as the settings have them, each with the permit that its writes look at (D18, D28)."""

from __future__ import annotations

from dataclasses import dataclass

from mirror.kube.client import Client
from mirror.kube.connect import connect_management, connect_worker
from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.kube.permits import WritePermit
from mirror.model.endings import CannotStart
from mirror.settings.schema import Settings
from mirror.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Connections:
    """Makes them."""

    settings: Settings
    metrics: Metrics

    async def management(self, permit: WritePermit | None) -> Client:
        """A client of the management cluster; without a permit nothing is held back.

        Raises:
            CannotStart: its kubeconfig is refused.
        """
        settings = self.settings
        try:
            return await connect_management(
                settings.kubeconfig, limits=settings.management, observer=self.metrics, permit=permit
            )
        except KubeconfigRefused as error:
            raise CannotStart(f"kubeconfig: {error}") from error

    async def worker(self, name: str, kubeconfig: bytes, permit: WritePermit | None) -> Client:
        """A client of a worker; raises as ``workers.registry.Connector``."""
        allow, limits = self.settings.workers.allow, self.settings.workers
        checked = check_kubeconfig(kubeconfig, allow)
        return await connect_worker(name, checked, allow=allow, limits=limits, observer=self.metrics, permit=permit)
