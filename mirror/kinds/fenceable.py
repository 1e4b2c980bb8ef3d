"""What a fence needs of a kind: a deadline that its worker's own controller enforces (D14). Pure.

A kind that has no such field has no ``base.Kind.fence``, and its objects are never fenced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from mirror.kube.objects import Object


class Lease(msgspec.Struct, frozen=True):
    """The deadline of a mirror, as its worker has it."""

    seconds: int | None
    """After its start; None: it has none."""
    is_ours: bool
    """It is a lease, and not what the user wants."""
    started_at: int | None = None
    """By the worker's clock, seconds since 1970; None: it has not, or stopped and is to start anew when it goes on."""
    is_over: bool = False
    """How it ends is decided on its worker."""
    has_expired: bool = False
    """It is over since this deadline has passed."""
    has_ended: bool = False
    """Its worker says that nothing of it runs any more."""
    has_pods: bool = False
    """As far as its worker says."""
    is_held: bool = False
    """Suspended by us, and nothing of it runs."""


class Fence(Protocol):
    """The deadline of one kind's objects."""

    def lease(self, mirror: Object) -> Lease:
        """Whatever a worker says."""
        ...

    def is_run_by_queue(self, mirror: Object) -> bool:
        """Whether a queue of its worker has let it run, which may stop it and start it anew at any time (F4)."""
        ...

    def user_seconds(self, source: Object) -> int | None:
        """The deadline that the user wants."""
        ...

    def running_since(self, status: Mapping[str, Any]) -> int | None:
        """When a source has started, as its status says; None: it says that it does not run."""
        ...

    def started_at(self, status: Mapping[str, Any]) -> int | None:
        """The same, whether it runs or not."""
        ...

    def grace_seconds(self, source: Object) -> float:
        """For how long its pods may go on once they are to end."""
        ...

    def pods(self, source: Object) -> int:
        """How many run at a time, at most."""
        ...

    def operations(self, mirror: Object, seconds: int | None, *, is_ours: bool) -> Sequence[Mapping[str, Any]]:
        """The JSON Patch that gives a mirror this deadline; None: none."""
        ...

    def progress_of_expired(self, source: Object, mirror: Object) -> Object:
        """A mirror that the lease has ended, or ends, without what that did: no verdict, nothing failed of it."""
        ...
