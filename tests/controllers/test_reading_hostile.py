"""What is read from a worker in rounds is not kept, whatever its size and number (D29)."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from mirror.controllers import reading_cluster_queues, reading_quotas, reading_workloads
from mirror.kinds.registry import BUILT_IN
from mirror.kube.objects import decode_object
from mirror.kube.watch import Page
from mirror.workers.worker import Worker

MIB = 2**20
NUMBER = 40
_QUOTA = {"hard": {"cpu": "4"}, "used": {"cpu": "3"}, "padding": "x" * MIB}
_WAITS = {"conditions": [{"type": "QuotaReserved", "status": "False", "message": "no room"}], "padding": "x" * MIB}
_NOMINAL = [{"flavors": [{"resources": [{"name": "cpu", "nominalQuota": "4"}]}]}]


def worker() -> Worker:
    plain = SimpleNamespace(
        client=None, watches=SimpleNamespace(namespaces=("ml",)), source_namespace_of=lambda namespace: namespace
    )
    return cast("Worker", plain)


def pages_of(number: int) -> Callable[..., AsyncIterator[Page]]:
    """Any kind: a megabyte each."""

    async def pages(client: object, resource: Any, *, namespace: str | None = None) -> AsyncIterator[Page]:
        for at in range(number):
            metadata = {"name": f"q{at}", "namespace": namespace or "", "labels": {"kueue.x-k8s.io/job-uid": f"u{at}"}}
            spec = {"clusterQueue": f"q{at}", "resourceGroups": _NOMINAL, "padding": "x" * MIB}
            status = _QUOTA if resource.plural == "resourcequotas" else _WAITS
            body = {"metadata": metadata, "spec": spec, "status": status}
            yield Page([decode_object(msgspec.json.encode(body))], "1")

    return pages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "read", "found"),
    [
        (reading_quotas, lambda: reading_quotas.read_quotas(worker(), kinds=BUILT_IN), {("ml", ""): 0.25}),
        (
            reading_cluster_queues,
            lambda: reading_cluster_queues.read_cluster_queues(worker()),
            {("", ""): 0.0, **{("ml", f"q{at}"): 1.0 for at in range(NUMBER)}},
        ),
        (
            reading_workloads,
            lambda: reading_workloads._texts(worker(), ["ml"], frozenset({"u3", "u99"})),
            {"u3": "no room"},
        ),
    ],
)
async def test_nothing_of_what_was_read_is_kept_but_the_answer(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, read: Callable[[], Awaitable[object]], found: object
) -> None:
    """Ten thousand objects of 4 MiB would be 40 GiB."""
    monkeypatch.setattr(module, "list_pages", pages_of(NUMBER))
    tracemalloc.start()
    try:
        assert await read() == found
        assert tracemalloc.get_traced_memory()[1] < NUMBER * MIB / 2
    finally:
        tracemalloc.stop()
