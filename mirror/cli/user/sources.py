"""What a Job of the management cluster says about itself to somebody who may only read Jobs. Pure.

Used by ``get`` and ``explain``. Everything comes from the Job alone, by the same read model as the manager's
(``kinds.read_model``). How far behind its status is, only the manager knows (``server``).
"""

from __future__ import annotations

from mirror.kinds import read_model
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.views import JobView

_MARKS = (names.ASSIGNED_WORKER, names.WAITING_BECAUSE, names.MIRROR_UID, names.HELD)


def is_source(kind: Kind, job: Object) -> bool:
    """Whether a manager of ours runs it, whatever value of ``managedBy`` it is configured for."""
    managed_by = kind.managed_by(job) or ""
    if managed_by in ("", names.BUILT_IN_MANAGED_BY):
        return False
    if managed_by == names.DEFAULT_MANAGED_BY:
        return True
    return kind.summary(job).placed is not None or any(mark in job.annotations for mark in _MARKS)


def view_of(kind: Kind, job: Object) -> JobView:
    """One Job; of one that no manager of ours runs, that is the reason."""
    if is_source(kind, job) or names.WAITING_BECAUSE in job.annotations:
        return read_model.view_of(kind, job)
    because = f"not mirrored: {kind.managed_by_field} is {kind.managed_by(job) or 'not set'}"
    return read_model.view_of(kind, job, because=because)


def obstacles_of(because: str) -> dict[str, str]:
    """Worker and why it is not eligible, of the text of ``waiting-because`` where it lists workers (D21)."""
    found: dict[str, str] = {}
    for part in because.split("; "):
        if part.startswith("…and "):
            continue  # those that are only counted
        worker, colon, obstacle = part.partition(": ")
        if not colon or not worker or " " in worker:
            return {}
        found[worker] = obstacle
    return found
