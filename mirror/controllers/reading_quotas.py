"""Reads the ResourceQuotas of a worker, for the score ``quota`` (``placement.quotas``). Called by ``worker_rounds``."""

from __future__ import annotations

from collections.abc import Mapping

from mirror.batch import views
from mirror.kinds.registry import Kinds, resource_name
from mirror.kube.errors import BadAnswer
from mirror.kube.objects import Object
from mirror.kube.resources import RESOURCE_QUOTAS
from mirror.kube.watch import list_pages
from mirror.placement.facts import Subject
from mirror.placement.quotas import Amounts, free_share
from mirror.workers.worker import Worker

MOST_QUOTAS = 10_000
"""Of one worker: more is no answer that is of use (D29)."""


async def read_quotas(worker: Worker, *, kinds: Kinds) -> Mapping[Subject, float]:
    """By namespace of sources, the share that is free; raises KubeError.

    ``kinds``: of which objects are counted, beside what pods take.
    """
    shares: dict[Subject, float] = {}
    objects = frozenset(f"count/{resource_name(kind)}" for kind in kinds)
    count = 0
    for namespace in worker.watches.namespaces:
        async for page in list_pages(worker.client, RESOURCE_QUOTAS, namespace=namespace):
            for found in page.objects:
                if (count := count + 1) > MOST_QUOTAS:
                    raise BadAnswer(f"more than {MOST_QUOTAS} ResourceQuotas")
                source_namespace = worker.source_namespace_of(found.metadata.namespace)
                # Of each nothing but this is kept: what a worker writes into them may be long (D29).
                share = free_share((_amounts_of(found),), objects=objects) if source_namespace is not None else None
                if source_namespace is not None and share is not None:
                    subject = source_namespace, ""
                    shares[subject] = min(share, shares.get(subject, share))
    return shares


def _amounts_of(quota: Object) -> tuple[Amounts, Amounts]:
    """``hard`` and ``used`` as its controller has them; nothing of one of some pods only, or that is unreadable."""
    try:
        spec, status = quota.spec_dict(), quota.status_dict()
    except BadAnswer:
        return {}, {}
    if spec.get("scopes") or spec.get("scopeSelector"):
        return {}, {}
    return views.mapping(status.get("hard")), views.mapping(status.get("used"))
