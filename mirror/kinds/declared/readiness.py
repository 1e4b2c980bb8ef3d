"""Whether what a kind that is data consists of is ready, by the counts that its entry names (D22). Pure.

Nothing is claimed where an entry names none, or a status has none of them. Used by ``kind``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mirror.batch import views
from mirror.kinds.declared.form import Form, path_of
from mirror.model.field_paths import FieldPath, at

Json = Any
Spec = Callable[[], Mapping[str, Json]]
"""Decodes the spec, where it is needed: mostly the status is enough."""


class Readiness:
    """Reads the counts ``ready`` and ``desired`` of one kind, beside ``active`` and ``succeeded``."""

    def __init__(self, form: Form) -> None:
        counts = form.entry.counts
        self._form = form
        self._ready, self._active, self._succeeded, self._desired = (
            tuple(map(path_of, texts)) for texts in (counts.ready, counts.active, counts.succeeded, counts.desired)
        )

    @property
    def is_told(self) -> bool:
        """Whether the entry says where that is counted."""
        return bool(self._ready)

    def is_incomplete(self, status: Mapping[str, Json], spec: Spec) -> bool:
        """Whether it goes on, and less of it is ready than should be: of what is active, or of what is desired."""
        if not self.is_told or not status:
            return False
        ready = sum(_values(self._ready, status))
        if self._desired:
            desired = sum(_values(self._desired, {"spec": spec(), "status": status}))
            is_so = desired > ready + sum(_values(self._succeeded, status))
        else:
            is_so = sum(_values(self._active, status)) > ready
        return is_so and self._goes_on(status, spec)

    def is_missing(self, status: Mapping[str, Json], spec: Spec) -> bool:
        """Whether it should go on, and nothing of it is there; also where its controller has not written a word.

        Where it is known how much is desired, the other question tells the rest of that.
        """
        if not self.is_told:
            return False
        counted = [] if self._desired else [*_values((*self._active, *self._ready), status)]
        is_so = not status or (bool(counted) and not any(counted))
        return is_so and self._goes_on(status, spec)

    def _goes_on(self, status: Mapping[str, Json], spec: Spec) -> bool:
        return not self._form.end_of(status) and not self._form.is_held(spec())


def _values(paths: tuple[FieldPath, ...], body: Mapping[str, Json]) -> Iterator[int]:
    return (views.number(at(body, place)) for path in paths for place in path.places(body))
