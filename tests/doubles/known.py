"""What is known of all workers, beside a look at each of them."""

from __future__ import annotations

from collections import defaultdict

from mirror.runtime.store import Name
from mirror.workers.registry import Registry


def check_known(registry: Registry) -> None:
    """Workers are found by what they have and by how they are as if each were looked at.

    Raises:
        AssertionError: they are not.
    """
    workers = registry.workers
    for kind in registry.kinds:
        seen: defaultdict[Name, list[str]] = defaultdict(list)
        for name in sorted(workers):
            for metadata in workers[name].mirrors_of(kind).metadata():
                namespace = workers[name].source_namespace_of(metadata.namespace)
                if namespace is not None:
                    seen[namespace, metadata.name].append(name)
        holders = workers.holders[kind.name]
        assert {source: list(holders.of(source)) for source in seen} == seen
        assert len(holders) == len(seen)
    unreachable = {name for name, worker in workers.items() if not worker.is_reachable}
    assert workers.unreachable == unreachable
    assert workers.lost == {name for name in unreachable if not workers[name].is_gone}
    assert workers.unsettled == {
        name for name, worker in workers.items() if worker.spec is not None and not worker.has_settled
    }
