"""The source of a kind that is data: what it says, and the statuses that follow (D7, D25).

A status is copied whole; beside what the worker says stand our conditions, which are the record. The CRD's schema is
the only judge of a custom resource's status, so there are no transitions to obey but one: what has ended stays so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any

from mirror.batch import conditions as lists
from mirror.batch import times, views
from mirror.kinds import explaining
from mirror.kinds.declared import record
from mirror.kinds.declared.body import carries_spec, is_held_by_us
from mirror.kinds.declared.form import Form, condition_of, path_of
from mirror.kinds.declared.status_bounds import room_beside
from mirror.kinds.declared.status_clean import cleaned
from mirror.kinds.declared.status_schema import StatusSchema
from mirror.kinds.movable import UnmovableSource
from mirror.kinds.stored_source import NextStatus, Status
from mirror.kube.objects import Object
from mirror.model import field_paths, names
from mirror.model.reasons import Obstruction
from mirror.model.text import clean
from mirror.settings.kinds import StatusPatch

Json = Any
Condition = Mapping[str, Json]

MIRROR_LOST = "MirrorLost"
PLACED_REASON, MIRRORED_REASON, SUSPENDED_REASON = "Placed", "MirrorCreated", "Suspended"
NOW, REASON, MESSAGE = "now", "{reason}", "{message}"
"""In ``StatusPatch.set``: the time, and what a condition would say."""
_GENERATION = "observedGeneration"
_SAY_NOTHING = frozenset((_GENERATION, "suspended"))
"""Numbers that are there before anything has run."""
_LONGEST_MESSAGE = 1024
CLOCKS_AGREE_SECONDS = 10.0


class StoredSource(UnmovableSource):
    """``base.StoredSource`` of such a kind."""

    def __init__(self, form: Form, found: Object, schema: StatusSchema | None = None) -> None:
        """``schema``: of the status here, as far as it is known."""
        self._schema = schema
        self._form = form
        self._found = found
        self._spec = found.spec_dict()
        self.status: Mapping[str, Any] = record.merged(form, found.status_dict(), record.text_in(form, found))

    # -- what it says --------------------------------------------------------------------------------------------------

    @property
    def is_suspended(self) -> bool:
        return self._form.is_held(self._spec)

    @cached_property
    def is_finished(self) -> bool:
        return bool(self._form.end_of(self.status))

    @cached_property
    def has_started(self) -> bool:
        return self.is_finished or has_started(self._form, self.status)

    @property
    def placed_worker(self) -> str | None:
        return _message(self.status, names.PLACED)

    @property
    def mirror_uid(self) -> str | None:
        return _message(self.status, names.MIRRORED)

    @property
    def obstruction_reason(self) -> str:
        return explaining.reason_of(self._conditions)

    @property
    def _conditions(self) -> list[Condition]:
        return lists.of(self.status)

    # -- what follows from its mirror ----------------------------------------------------------------------------------

    def next_status(
        self,
        mirror: Object,
        *,
        now: datetime,
        mirror_suspended: bool = False,
        clock_offset_seconds: float | None = None,
        settled: bool = False,
    ) -> NextStatus:
        room = room_beside(self._found, len(mirror.status))
        theirs = cleaned(self._form, mirror.status_dict(), self._schema, room=room)
        if self.is_finished and not self._is_same_end(theirs.status):
            return NextStatus(None, "finished: nothing of it changes any more")
        if not theirs.status:
            return NextStatus(None, "the mirror has no status", cut=theirs.cut)
        may_be_withdrawn = self._form.may_be_withdrawn(theirs.status)
        if may_be_withdrawn and not self.is_finished and not self._form.is_held(mirror.spec_dict()):
            return NextStatus(None, "its end may be withdrawn: the mirror is suspended first", cut=theirs.cut)
        reported = self._with_generations(theirs.status, mirror)
        if (
            self._form.withdrawable
            and not self.is_suspended
            and (may_be_withdrawn or is_held_by_us(self._form, mirror))
        ):
            reported = self._without_our_pause(reported)
        status, dropped = self._merged(reported)
        cut = theirs.cut + dropped
        if self.is_finished:
            status = self._with_stored_end(status)
        if status == self.status:
            return NextStatus(None, "already stored", cut=cut)
        end = self._form.end_of(status)
        if not end or self.is_finished:
            return NextStatus(status, "the mirror's status changed", cut=cut)
        is_skewed = clock_offset_seconds is not None and abs(clock_offset_seconds) > CLOCKS_AGREE_SECONDS
        if is_skewed:
            status = self._ended_by_our_clock(status, times.of(now))
        return NextStatus(status, f"the mirror has ended: {end}", cut=cut, clock_skewed=is_skewed)

    def _ended_by_our_clock(self, status: Status, at: str) -> Status:
        """With our time at its final condition: what is deleted some time after its end is so by our clock (D7)."""
        final = self._form.end_condition(status).get("type")
        listed = [{**one, "lastTransitionTime": at} if one.get("type") == final else one for one in lists.of(status)]
        return {**status, "conditions": listed} if listed else status

    def _without_our_pause(self, reported: Mapping[str, Json]) -> Mapping[str, Json]:
        """With the conditions of a pause as they are stored: the mirror is suspended so that it stays ended.

        Or was so when the end had been withdrawn already, and is about to be resumed.
        """
        types = {one.type for one in self._form.entry.suspended.conditions}
        named = ((views.text(one.get("type")), one) for one in lists.of(reported))
        found = (condition_of(self.status, name) if name in types else one for name, one in named)
        return {**reported, "conditions": [one for one in found if one]} if types else reported

    def _is_same_end(self, reported: Mapping[str, Json]) -> bool:
        """Whether a mirror tells of the end that is stored: what it counts may settle after it, the end may not."""
        ends = [
            (self._form.end_of(one), self._form.end_condition(one).get("reason")) for one in (self.status, reported)
        ]
        return ends[0] == ends[1]

    def _with_stored_end(self, status: Status) -> Status:
        """With the condition that tells of the end as it is stored: its time may be ours."""
        final = self._form.end_condition(self.status)
        if not final:
            return status
        listed = [final if one.get("type") == final.get("type") else one for one in lists.of(status)]
        return {**status, "conditions": listed}

    def _merged(self, reported: Mapping[str, Json]) -> tuple[Status, int]:
        """The mirror's status with our conditions; and how many of its conditions found no room."""
        form = self._form.entry.status
        ours = [one for one in self._conditions if _is_ours(one)]
        listed = list(lists.of(reported))
        both = self._bounded([*ours, *listed] if form.own == "first" else [*listed, *ours])
        status = {**form.defaults, **reported}
        return {**status, "conditions": both} if both else status, len(ours) + len(listed) - len(both)

    def _bounded(self, listed: Sequence[Condition]) -> list[Condition]:
        """As many as the CRD takes: ours, then those that tell of an end or a pause, in their order."""
        entry, most = self._form.entry, self._form.entry.status.max_conditions
        telling = {*self._form.final_types, *(one.type for one in entry.suspended.conditions)}

        def importance(index: int) -> tuple[bool, bool, int]:
            one = listed[index]
            return not _is_ours(one), one.get("type") not in telling, index

        kept = set(sorted(range(len(listed)), key=importance)[: most or None])
        return [one for index, one in enumerate(listed) if index in kept]

    def _with_generations(self, reported: Mapping[str, Json], mirror: Object) -> Mapping[str, Json]:
        """With the source's generation where the mirror tells of its own, and was sent the source's present spec.

        Else what was stored stays: who waits for the status to be about a generation would be satisfied too early.
        """
        listed = lists.of(reported)
        if self._form.entry.status.generation != "rewrite":
            return reported
        if _GENERATION not in reported and not any(_GENERATION in one for one in listed):
            return reported
        generation = self._found.metadata.generation
        is_present = cache(lambda: carries_spec(self._form, self._found, mirror))  # most statuses tell of it already

        def rewritten(found: Mapping[str, Json], stored: Mapping[str, Json]) -> Mapping[str, Json]:
            if _GENERATION not in found:
                return found
            is_about_it = found[_GENERATION] == mirror.metadata.generation
            if stored.get(_GENERATION) == generation or (is_about_it and is_present()):
                return {**found, _GENERATION: generation}
            kept = {name: value for name, value in found.items() if name != _GENERATION}
            return {**kept, _GENERATION: stored[_GENERATION]} if _GENERATION in stored else kept

        status = dict(rewritten(reported, self.status))
        if listed:
            status["conditions"] = [rewritten(one, condition_of(self.status, str(one.get("type")))) for one in listed]
        return status

    # -- what no mirror dictates ---------------------------------------------------------------------------------------

    def suspended_status(self, now: datetime) -> Status | None:
        if self.is_finished:
            return None
        patch = self._form.entry.suspended
        wanted = [one for one in patch.conditions if condition_of(self.status, one.type).get("status") != one.status]
        if patch.conditions and not wanted:
            return None
        status = self._patched(patch, now, reason=SUSPENDED_REASON, message=f"{self._form.entry.kind} suspended")
        return status if status != self.status else None

    def lost_status(self, now: datetime, *, message: str, reason: str) -> Status | None:
        if self.is_finished:
            return None
        lost = self._form.entry.lost
        if not self._form.entry.done.never:
            return self._patched(lost, now, reason=reason, message=message)
        # It begins anew on the same worker: nothing of what its mirror said holds any more.
        kept = [one for one in self._conditions if _is_ours(one) and one.get("type") != names.MIRRORED]
        return self._patched(lost, now, reason=reason, message=message, base={"conditions": kept} if kept else {})

    def _patched(
        self,
        patch: StatusPatch,
        now: datetime,
        *,
        reason: str,
        message: str,
        base: Mapping[str, Json] | None = None,
    ) -> Status:
        """The stored status with what an entry says; conditions without a reason get this one."""
        at = times.of(now)
        said = {NOW: at, REASON: reason, MESSAGE: clean(message, longest=_LONGEST_MESSAGE)}
        status: Json = {**self._form.entry.status.defaults, **(self.status if base is None else base)}
        for name, value in patch.set.items():
            where = tuple(step for step, _ in path_of(name).steps)
            status = field_paths.put(status, where, said.get(value, value) if isinstance(value, str) else value)
        for path in map(path_of, patch.zero):
            for place in path.places(status):
                if views.optional_number(field_paths.at(status, place)) is not None:
                    status = field_paths.put(status, place, 0)
        listed: Sequence[Condition] = lists.of(status)
        for one in patch.conditions:
            listed = lists.upsert(
                listed, _condition(one.type, one.status, reason=one.reason or reason, message=message, at=at)
            )
        return self._with_conditions(listed, status)

    def placed_status(self, worker: str | None, now: datetime) -> Status | None:
        if worker is None:
            listed: Sequence[Condition] = lists.without(self._conditions, names.PLACED, names.MIRRORED)
        elif worker == self.placed_worker:
            return None
        else:
            placed = _condition(names.PLACED, "True", reason=PLACED_REASON, message=worker, at=times.of(now))
            listed = self._placed_at(self._conditions, placed)
        status = self._with_conditions(listed)
        return status if status != self.status else None

    def mirrored_status(self, status: Mapping[str, Any] | None, mirror_uid: str, now: datetime) -> Status:
        base = self.status if status is None else status
        mirrored = _condition(names.MIRRORED, "True", reason=MIRRORED_REASON, message=mirror_uid, at=times.of(now))
        return self._with_conditions(self._placed_at(lists.of(base), mirrored), base)

    def explained_status(
        self, status: Mapping[str, Any] | None, why: Obstruction | None, *, is_placed: bool, now: datetime
    ) -> Status | None:
        base = self.status if status is None else status
        listed = lists.of(base)
        explained = explaining.explained(listed, why, is_placed=is_placed, at=times.of(now))
        changed = [_as_metav1(one) if _is_ours(one) else one for one in explained]
        if changed == listed:
            return None
        ours = [one for one in changed if _is_ours(one)]
        others = [one for one in changed if not _is_ours(one)]
        is_first = self._form.entry.status.own == "first"
        return self._with_conditions([*ours, *others] if is_first else [*others, *ours], base)

    def _placed_at(self, listed: Sequence[Condition], condition: Condition) -> Sequence[Condition]:
        """The list with a condition of ours where ours stand."""
        if condition_of({"conditions": listed}, str(condition["type"])) or self._form.entry.status.own == "last":
            return lists.upsert(listed, condition)
        ours = [one for one in listed if _is_ours(one)]
        return [*ours, condition, *(one for one in listed if not _is_ours(one))]

    def _with_conditions(self, listed: Sequence[Condition], base: Mapping[str, Json] | None = None) -> Status:
        status = {**self._form.entry.status.defaults, **(self.status if base is None else base)}
        status.pop("conditions", None)
        return {**status, "conditions": self._bounded(listed)} if listed else status


def has_started(form: Form, status: Mapping[str, Json]) -> bool:
    """Whether anything of it has run, as far as any status tells (D11).

    By a time, a number, a condition that is True, or what its entry has as ``started``.
    """
    if form.has_begun(status):
        return True
    says_suspended = {one.type for one in form.entry.suspended.conditions}
    for one in lists.of(status):
        if one.get("status") == "True" and not _is_ours(one) and one.get("type") not in says_suspended:
            return True
    rest = {name: value for name, value in status.items() if name != "conditions"}
    return _counts(rest)


def _counts(found: Json, name: str = "") -> bool:
    if isinstance(found, Mapping):
        return any(_counts(value, str(key)) for key, value in found.items() if key not in _SAY_NOTHING)
    if isinstance(found, list):
        return any(_counts(one) for one in found)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return bool(found) and (is_number or name in ("startTime", "completionTime"))


def _is_ours(condition: Condition) -> bool:
    return views.text(condition.get("type")).startswith(names.PREFIX)


def _message(status: Mapping[str, Json], type_name: str) -> str | None:
    found = condition_of(status, type_name)
    return views.text(found.get("message")) or None if found.get("status") == "True" else None


def _as_metav1(condition: Condition) -> Condition:
    """Without what only Jobs' conditions have."""
    return {name: value for name, value in condition.items() if name != "lastProbeTime"} | {
        "message": condition.get("message", "")
    }


def _condition(type_name: str, status: str, *, reason: str, message: str, at: str) -> dict[str, object]:
    """As metav1 has them: all five fields are required."""
    shown = clean(message, longest=_LONGEST_MESSAGE)
    return {"type": type_name, "status": status, "reason": reason, "message": shown, "lastTransitionTime": at}
