"""What a worker says about its Job, made safe: known fields only, typed, bounded (D7, D18).

A worker is another party's API server: its answer may hold anything that is JSON. What passes here fits the API's types
and is printable; whether it makes sense beside what is stored is decided in ``status``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from mirror.batch import conditions, indexes, times, views
from mirror.batch.indexes import Intervals
from mirror.model import names, text

MAX_CONDITIONS = 16
MAX_OTHER_CONDITIONS = MAX_CONDITIONS - len(conditions.STANDARD) - 1
"""Of a worker's own types. Ours, ``Placed`` and ``Mirrored``, come beside them."""
MAX_REASON = 128
MAX_MESSAGE_BYTES = 1024
MAX_UNCOUNTED = 500
MAX_INDEX_TEXT = 512 * 1024
"""Every second one of a million indexes does not fit; every second one of the 100,000 that are supported does."""

_LARGEST_COUNT = 2**31 - 1
_LAST_SECOND = times.seconds("9999-12-31T00:00:00Z")
_UID = re.compile(r"[0-9A-Za-z-]{1,40}", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_REASON = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")


class Cleaned(msgspec.Struct, frozen=True):
    """A worker's status as far as it is usable; times are texts in UTC and whole seconds."""

    conditions: tuple[Mapping[str, object], ...] = ()
    """One of a type; of the verdicts only those that are True, of Suspended only True or False; none of ours."""
    start: str | None = None
    completion: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    terminating: int | None = None
    completed_indexes: Intervals = ()
    failed_indexes: Intervals | None = None
    uncounted: Mapping[str, list[str]] | None = None
    cut: int = 0
    """How many values were dropped or shortened."""

    def condition(self, type_name: str) -> Mapping[str, object] | None:
        return conditions.find(self.conditions, type_name)

    @property
    def newest_time(self) -> str | None:
        """The latest time that is mentioned."""
        changed = [views.text(one.get("lastTransitionTime")) for one in self.conditions]
        return max(self.start or "", self.completion or "", *changed) or None


def clean(worker_status: object, *, completions: int | None) -> Cleaned:
    """Take what is usable of any JSON value. Never raises.

    ``completions`` are the source's; index texts are clipped to them, and ignored when there are none.
    """
    status = views.mapping(worker_status)
    cutter = _Cutter()
    if worker_status is not None and not isinstance(worker_status, Mapping):
        cutter.cut += 1
    return Cleaned(
        conditions=cutter.conditions(status.get("conditions")),
        start=cutter.time(status.get("startTime")),
        completion=cutter.time(status.get("completionTime")),
        active=cutter.count(status.get("active")) or 0,
        succeeded=cutter.count(status.get("succeeded")) or 0,
        failed=cutter.count(status.get("failed")) or 0,
        ready=cutter.count(status.get("ready")),
        terminating=cutter.count(status.get("terminating")),
        completed_indexes=cutter.indexes(status.get("completedIndexes"), completions) or (),
        failed_indexes=cutter.indexes(status.get("failedIndexes"), completions),
        uncounted=cutter.uncounted(status.get("uncountedTerminatedPods")),
        cut=cutter.cut,
    )


def clean_message(message: str) -> str:
    """The message as one printable line of at most 1 KiB."""
    return _Cutter().message(message)


class _Cutter:
    """One cleaning: every method takes any value, and counts when it keeps less than it was given."""

    def __init__(self) -> None:
        self.cut = 0

    def count(self, value: object) -> int | None:
        if type(value) is int and 0 <= value <= _LARGEST_COUNT:
            return value
        if value is not None:
            self.cut += 1
        return None

    def time(self, value: object) -> str | None:
        if value is None:
            return None
        if isinstance(value, str) and len(value) <= 64:
            text = _usable_time(value)
            if text is not None:
                return text
        self.cut += 1
        return None

    def message(self, value: object) -> str:
        if not isinstance(value, str):
            self._drop(value)
            return ""
        line = text.clean(value, longest=MAX_MESSAGE_BYTES)
        encoded = line.encode()
        if len(encoded) > MAX_MESSAGE_BYTES:
            line = encoded[: MAX_MESSAGE_BYTES - len("…".encode())].decode(errors="ignore") + "…"
        self.cut += line != value
        return line

    def reason(self, value: object) -> str:
        if not isinstance(value, str) or not value:
            self._drop(value or None)
            return ""
        reason = value[:MAX_REASON].rstrip(",:") if len(value) > MAX_REASON else value
        kept = reason if _REASON.fullmatch(reason) else ""
        self.cut += kept != value
        return kept

    def indexes(self, value: object, completions: int | None) -> Intervals | None:
        if value is None or (isinstance(value, str) and completions is None):
            return None
        if isinstance(value, str) and completions is not None and len(value) <= MAX_INDEX_TEXT:
            return indexes.read(value, completions)
        self.cut += 1
        return None

    def uncounted(self, value: object) -> Mapping[str, list[str]] | None:
        if value is None:
            return None
        if value == {}:
            return {}
        if not isinstance(value, Mapping):
            self.cut += 1
            return None
        taken: dict[str, None] = {}
        lists: dict[str, list[str]] = {}
        for name in ("succeeded", "failed"):
            uids = views.items(value.get(name))
            kept: list[str] = []
            for uid in uids:
                if len(taken) == MAX_UNCOUNTED:
                    break
                if isinstance(uid, str) and _UID.fullmatch(uid) and uid not in taken:
                    taken[uid] = None
                    kept.append(uid)
            self.cut += len(uids) - len(kept)
            if kept:
                lists[name] = kept
        return lists

    def conditions(self, value: object) -> tuple[Mapping[str, object], ...]:
        if not isinstance(value, list | tuple):
            self._drop(value)
            return ()
        kept: dict[str, Mapping[str, object]] = {}
        for one in map(views.mapping, value):
            name, status = views.text(one.get("type")), views.text(one.get("status"))
            if name in conditions.STANDARD and _says_nothing(name, status):
                continue
            # A claim that became True stands beside its old entry in real statuses (Q14).
            is_better = name in kept and status == conditions.TRUE != kept[name]["status"]
            if is_better or (name not in kept and self._has_room(name, kept) and _is_valid(name, status)):
                self.cut += is_better
                kept[name] = self._condition(name, status, one)
            else:
                self.cut += 1
        return tuple(kept.values())

    def _condition(self, name: str, status: str, value: Mapping[str, object]) -> Mapping[str, object]:
        reason, message = self.reason(value.get("reason")), self.message(value.get("message"))
        return conditions.new(name, status, reason=reason, message=message, at=None) | {
            "lastProbeTime": self.time(value.get("lastProbeTime")),
            "lastTransitionTime": self.time(value.get("lastTransitionTime")),
        }

    @staticmethod
    def _has_room(name: str, kept: Mapping[str, object]) -> bool:
        return name in conditions.STANDARD or len(kept.keys() - conditions.STANDARD) < MAX_OTHER_CONDITIONS

    def _drop(self, value: object) -> None:
        self.cut += value is not None


@lru_cache(maxsize=4096)
def _usable_time(value: str) -> str | None:
    """As it is stored; None for what is no time, or one that nobody can mean."""
    try:
        seconds = times.seconds(value)
    except times.BadTime:
        return None
    return times.text(seconds) if 0 <= seconds <= _LAST_SECOND else None


def _says_nothing(name: str, status: str) -> bool:
    """A verdict that is not reached says nothing (Q14); a suspension is there or is over."""
    return status == conditions.UNKNOWN or (status == conditions.FALSE and name != conditions.SUSPENDED)


def _is_valid(name: str, status: str) -> bool:
    """Whether the type is a qualified name that is not ours, and the status is one of three."""
    if status not in (conditions.TRUE, conditions.FALSE, conditions.UNKNOWN) or name.startswith(names.PREFIX):
        return False
    prefix, slash, rest = name.rpartition("/")
    if slash and (
        len(prefix) > 253 or not _PREFIX.fullmatch(prefix) or any(gap in prefix for gap in ("..", ".-", "-."))
    ):
        return False
    return len(rest) <= 63 and _NAME.fullmatch(rest) is not None
