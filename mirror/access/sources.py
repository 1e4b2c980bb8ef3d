"""What ``access`` needs of the manager: given by ``http_services``, and by tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mirror.kinds.base import Kind, MirrorTransform
from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.model.keys import SourceKey
from mirror.model.views import Known
from mirror.placement.explaining import Choice
from mirror.workers.worker import Worker


@dataclass(frozen=True, slots=True)
class AccessSources:
    """Where the answers of ``access`` come from."""

    management: Client
    kinds: Kinds
    """Whose objects can be asked for."""
    sources: Callable[[SourceKey], Object | None]
    """A source from the cache."""
    workers: Mapping[str, Worker]
    """All, by name."""
    known: Known
    obstacles_of_draft: Callable[[Kind, Object], Mapping[str, str]]
    choice_for_draft: Callable[[Kind, Object], Choice]
    transform: MirrorTransform
    managed_by: str
