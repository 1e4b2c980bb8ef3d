"""What trying elsewhere needs of a kind and of a source (D31). Parts of ``movable``'s, and so of ``base``'s. Pure.

A kind whose API cannot show that nothing of a mirror ever ran has no ``Retry``, and its mirrors stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from mirror.kube.objects import Object
from mirror.model.retries import Retries, Tried


class Retry(Protocol):
    """Of one kind; a mirror is such as a worker has it, which may answer anything."""

    def unready_since(self, source: Object, mirror: Object) -> int | None:
        """Since when a mirror that runs may have had no ready pod, by its worker's clock; seconds since 1970.

        None: it has one, or should have none, or something of it has run or may have, unseen: it was suspended or
        changed after it was made, pods of it were counted, or might end without being counted.
        """
        ...

    def stopping(self, mirror: Object, mark: str) -> tuple[Mapping[str, Any], ...]:
        """What suspends it, as ``MovableKind.stopping``, and says by whom."""
        ...

    def is_drained(self, mirror: Object) -> bool:
        """Whether all that ever happened to it is that it was suspended, once.

        By its own controller's word it is suspended then, has no pod, and has never counted one.
        """
        ...

    def is_only_stopped(self, mirror: Object, mark: str = "") -> bool:
        """Whether it was suspended, once, and nothing else was changed since it was made.

        ``mark``: whether ``stopping`` did that with this one. Who else suspends it may have done so before its pods
        were listed, and what they were is gone then.
        """
        ...

    def has_counted(self, found: Object) -> bool:
        """Whether a status counts a pod that is over, or one that is ready."""
        ...

    def has_pods(self, found: Object) -> bool:
        """Whether a status counts a pod that is there."""
        ...

    def tried(self, source: Object) -> tuple[Tried, ...]:
        """On which workers nothing of a source ran, the last one last; without decoding anything: few were."""
        ...


class RetryableKind(Protocol):
    """See ``base.Kind``."""

    @property
    def retry(self) -> Retry | None:
        """How one is tried on another worker; None: it is not."""
        ...


class RetryableSource(Protocol):
    """See ``base.StoredSource``: statuses are whole ones, such that the API server takes them."""

    @property
    def retries(self) -> Retries:
        """What is recorded of that."""
        ...

    @property
    def kept_start(self) -> str:
        """The startTime that is stored; empty: none."""
        ...

    def retrying_status(
        self, status: Mapping[str, Any] | None, retries: Retries, now: datetime
    ) -> dict[str, Any] | None:
        """A status, or the stored one, with this record; None: such a kind is not tried elsewhere, or it is refused."""
        ...

    def retried_status(self, retries: Retries, now: datetime) -> dict[str, Any] | None:
        """The stored status without a worker, suspended until it has started on the next one."""
        ...


class UnretryableSource:
    """``RetryableSource`` of a kind that has no ``retry``."""

    @property
    def retries(self) -> Retries:
        return Retries()

    @property
    def kept_start(self) -> str:
        return ""

    def retrying_status(self, status: Mapping[str, Any] | None, retries: Retries, now: datetime) -> None:
        """It has no such record."""
        return

    def retried_status(self, retries: Retries, now: datetime) -> None:
        """It stays."""
        return
