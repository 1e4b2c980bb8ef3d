"""What can be read from a Job of the management cluster alone, without the manager. Pure.

Used by ``get`` and ``explain``. Everything comes from the Job alone, by the same read model as the manager's
(``kinds.read_model``). How far behind its status is, only the manager knows (``server``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from mirror.kinds import read_model
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.text import clean, nearest
from mirror.model.views import JobView

UNTOUCHED_SECONDS = 60.0
"""A manager that runs has placed a Job by then, or said why not."""
LONGEST_SHOWN = 100
_OF_LEADERS = (names.ASSIGNED_WORKER, names.MANAGER, names.WAITING_BECAUSE, names.MIRROR_UID)
_MARKS = (*_OF_LEADERS, names.HELD)
"""The last is the webhook's, which a manager serves that does not lead, or cannot."""


def is_source(kind: Kind, job: Object) -> bool:
    """Whether a manager of ours runs it, whatever value of ``managedBy`` it is configured for."""
    managed_by = kind.managed_by(job) or ""
    if managed_by in ("", names.BUILT_IN_MANAGED_BY):
        return False
    if managed_by == (kind.managed_by_value or names.DEFAULT_MANAGED_BY):
        return True
    return kind.summary(job).placed is not None or any(mark in job.annotations for mark in _MARKS)


def view_of(kind: Kind, job: Object, now: datetime | None = None) -> JobView:
    """One Job; of one that no manager of ours runs, or that none has touched, that is the reason."""
    if not is_source(kind, job) and names.WAITING_BECAUSE not in job.annotations:
        value = kind.managed_by(job)
        ours = kind.managed_by_value or names.DEFAULT_MANAGED_BY
        meant = f" (did you mean {ours}?)" if value and _is_like_ours(value) else ""
        because = f"not mirrored: {kind.managed_by_field} is {clean(value or 'not set', longest=LONGEST_SHOWN)}{meant}"
        return read_model.view_of(kind, job, because=because)
    return view_of_source(kind, job, now)


def view_of_source(kind: Kind, job: Object, now: datetime | None = None) -> JobView:
    """The same of one that is known to be a source."""
    view = read_model.view_of(kind, job)
    if is_untouched(view, job, now or datetime.now(UTC)):
        where = f"and watching namespace {job.metadata.namespace} (setting namespaces)"
        because = f"no manager acts on it: is one running, with managedBy {kind.managed_by(job)}, {where}?"
        return read_model.view_of(kind, job, because=because)
    return view


def is_untouched(view: JobView, job: Object, now: datetime) -> bool:
    """Whether a manager should have placed a Job by now, or said why not."""
    if view.state != "Waiting" or view.reason or not view.created:
        return False
    if any(mark in job.annotations for mark in _OF_LEADERS):
        return False
    return (now - datetime.fromisoformat(view.created)).total_seconds() > UNTOUCHED_SECONDS


def _is_like_ours(managed_by: str) -> bool:
    return nearest(managed_by.partition("/")[0], (names.PREFIX.rstrip("/"),)) is not None


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
