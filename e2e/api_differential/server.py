"""The real API server that we are compared with: one of its own, so that nobody writes to what is stored there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.api_differential.run import Comparison
from e2e.api_differential.wire import Wire
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import Shape
from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates

_NAMESPACE = "differential"
# As clusters are run; without it a server refuses privileged containers, whatever is in a Job.
_ARGUMENTS = ("--allow-privileged=true",)


@asynccontextmanager
async def comparison(
    feature_gates: Mapping[str, bool] | None = None, *, gates: FeatureGates = DEFAULT_GATES
) -> AsyncIterator[Comparison]:
    """A server with these gates, and ours with the same. It may panic (C32), which disturbs nobody else here.

    Raises:
        MissingBinaries, NotReady, ProgramEnded: there is none (``Cluster.start``).
    """
    shape = Shape(feature_gates=feature_gates or {}, apiserver_args=_ARGUMENTS)
    async with Cluster.start("differential", shape) as cluster, Client(cluster.kubeconfig) as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        async with Wire(cluster.kubeconfig, _NAMESPACE) as wire:
            yield Comparison(wire, gates)
