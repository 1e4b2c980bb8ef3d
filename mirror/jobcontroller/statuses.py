"""Storing a Job's status (Q19), and counting what it says has finished (PM3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.batch import indexes, views
from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide.values import Status
from mirror.jobcontroller.jobview import INDEXED
from mirror.jobcontroller.memory import JobMemory
from mirror.jobcontroller.ports import Metrics
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.kube.requests import Rank
from mirror.kube.resources import JOBS


class StatusWrites:
    """The only writer of statuses."""

    def __init__(self, client: Client, metrics: Metrics, gates: FeatureGates = FeatureGates()) -> None:  # noqa: B008 - frozen
        self._client = client
        self._metrics = metrics
        self._heeds_limit_per_index = gates.job_backoff_limit_per_index

    async def put(self, job: Object, memory: JobMemory, status: Status) -> Object:
        """Store a status if the Job is still at the version that we know; return the Job as it is then.

        The metadata goes along unchanged, since a status write replaces it, too (DF12).

        Raises:
            Conflict: somebody was faster. The watch brings what they wrote, and the next sync looks at that.
            KubeError: as ``Client.send``.
        """
        metadata = job.metadata
        body = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": metadata,
            "spec": job.spec,
            "status": status,
        }
        request = requests.update(JOBS, metadata.name, body, namespace=metadata.namespace, subresource="status")
        stored = await self._client.send_object(request.in_line(Rank.SECOND, metadata.uid))
        memory.written.wrote_job(stored.version)
        return stored

    def count(self, spec: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Count the pods and indexes that finished between two stored statuses; a 0 shows that there is a series."""
        mode = views.text(spec.get("completionMode")) or "NonIndexed"
        is_indexed = mode == INDEXED
        succeeded = self._count_indexes(spec, before, after) if is_indexed else _grown(before, after, "succeeded")
        for result, count in (("succeeded", succeeded), ("failed", _grown(before, after, "failed"))):
            self._metrics.on_pods_finished(mode, result, max(0, count))

    def _count_indexes(self, spec: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
        """Count finished indexes; return how many succeeded."""
        has_own_limits = self._heeds_limit_per_index and spec.get("backoffLimitPerIndex") is not None
        limit = "perIndex" if has_own_limits else "global"
        completions = views.number(spec.get("completions"))
        succeeded = _more_indexes(before, after, "completedIndexes", completions)
        failed = _more_indexes(before, after, "failedIndexes", completions) if has_own_limits else 0
        self._metrics.on_indexes_finished("succeeded", limit, max(0, succeeded))
        if failed > 0:
            self._metrics.on_indexes_finished("failed", limit, failed)
        return succeeded


def _grown(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> int:
    return views.number(after.get(name)) - views.number(before.get(name))


def _more_indexes(before: Mapping[str, Any], after: Mapping[str, Any], name: str, completions: int) -> int:
    """How many more indexes a text names, within the completions: after a scale-down fewer may count."""
    was, now = views.text(before.get(name)), views.text(after.get(name))
    if was == now:
        return 0
    return indexes.count(indexes.read(now, completions)) - indexes.count(indexes.read(was, completions))
