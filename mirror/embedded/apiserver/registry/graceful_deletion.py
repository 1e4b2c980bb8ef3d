"""What a delete does to an object now: nothing, a mark, a shorter grace, or the end. Pure.

The order of the questions is that of kube-apiserver's registry. ``deletion`` does what is found here, ``updates`` asks
whether an update was the last that an object waited for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from mirror.batch import times
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.strategy import Context, Strategy
from mirror.embedded.apiserver.request.delete_options import DeleteOptions

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


class Step(NamedTuple):
    """What a delete does to an object now."""

    body: Json | None
    """To be written; None: nothing is."""
    is_final: bool
    """Whether the object is removed (after the write)."""


def should_delete_during_update(strategy: Strategy, new: Json, old: Json) -> bool:
    """Whether an update leaves nothing that holds an object which is being deleted."""
    if new["metadata"].get("finalizers") or not old["metadata"].get("deletionTimestamp"):
        return False
    return not old["metadata"].get("deletionGracePeriodSeconds") and not strategy.is_held(new)


def before_delete(strategy: Strategy, body: Json, wanted: DeleteOptions, context: Context) -> Step:
    """What a delete does; ``body`` becomes what is to be written."""
    meta = body["metadata"]
    if strategy.is_held(body) or (_is_namespace(body) and not meta.get("deletionTimestamp")):
        return _held_step(strategy, body, wanted, context)
    is_graceful = False
    if strategy.has_graceful_deletion:
        pending, is_graceful = _begin_grace(strategy, meta, body, wanted, context)
        if pending:
            return Step(None, is_final=False)
    finalizers = _finalizers(strategy, meta, wanted)
    if finalizers != meta.get("finalizers", []):
        _set_finalizers(meta, finalizers)
    if is_graceful:
        strategy.begin_deletion(body, context)
        stays = bool(finalizers) or meta["deletionGracePeriodSeconds"] > 0
        return Step(body, is_final=not stays)
    if not finalizers:
        return Step(None, is_final=True)
    _mark(meta, context.now)
    meta["deletionGracePeriodSeconds"] = 0
    strategy.begin_deletion(body, context)
    return Step(body, is_final=False)


def _held_step(strategy: Strategy, body: Json, wanted: DeleteOptions, context: Context) -> Step:
    """Namespaces: the first delete marks, the others change nothing."""
    meta = body["metadata"]
    if meta.get("deletionTimestamp"):
        return Step(body, is_final=False)
    _mark(meta, context.now)
    if wanted.orphan is False:
        # Namespaces alone take this for the foreground, which for others is the background.
        wanted = replace(wanted, orphan=None, propagation="Foreground")
    finalizers = _finalizers(strategy, meta, wanted)
    if finalizers != meta.get("finalizers", []):
        _set_finalizers(meta, finalizers)
    strategy.begin_deletion(body, context)
    return Step(body, is_final=False)


def _begin_grace(
    strategy: Strategy, meta: Json, body: Json, wanted: DeleteOptions, context: Context
) -> tuple[bool, bool]:
    """Whether nothing is to be done because it is being deleted already; whether it is (or was) marked with a grace."""
    seconds = wanted.grace_seconds
    if seconds is not None and seconds < 0:
        seconds = 1
    if not meta.get("deletionTimestamp"):
        grace = strategy.grace_seconds(body, seconds)
        grace = 1 if grace < 0 else grace
        meta["deletionTimestamp"] = times.text(times.seconds(context.now) + _span(grace))
        meta["deletionGracePeriodSeconds"] = grace
        if meta.get("generation", 0) > 0:
            meta["generation"] += 1
        return False, True
    granted = meta.get("deletionGracePeriodSeconds") or 0
    if not granted:
        return False, False
    if seconds is None or seconds >= granted:
        return True, False
    # The grace can only become shorter, and its end is never before now.
    ends, now = times.seconds(meta["deletionTimestamp"]) - _span(granted) + _span(seconds), times.seconds(context.now)
    if ends < now:
        ends, seconds = now, min(seconds, 1)
    meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = times.text(ends), seconds
    return False, True


def _span(seconds: int) -> int:
    """Whole seconds of a duration that upstream counts in nanoseconds of 64 bits, which wrap."""
    nanoseconds = (seconds * times.NANOSECONDS + 2**63) % 2**64 - 2**63
    return nanoseconds // times.NANOSECONDS


def _finalizers(strategy: Strategy, meta: Json, wanted: DeleteOptions) -> list[str]:
    """The object's finalizers with those that tell the garbage collector what to do with its dependents."""
    present = meta.get("finalizers") or []
    kept = [one for one in present if one not in (ORPHAN, FOREGROUND)]
    if strategy.default_propagation:
        kept += _collector_finalizers(strategy, present, wanted)
    return present if set(kept) == set(present) else kept


def _collector_finalizers(strategy: Strategy, present: list[str], wanted: DeleteOptions) -> list[str]:
    if wanted.orphan is not None:
        return [ORPHAN] if wanted.orphan else []
    match wanted.propagation:
        case "Orphan":
            return [ORPHAN]
        case "Foreground":
            return [FOREGROUND]
        case "Background":
            return []
    for one in present:
        if one in (ORPHAN, FOREGROUND):
            return [one]
    return [ORPHAN] if strategy.default_propagation == "Orphan" else []


def _set_finalizers(meta: Json, finalizers: list[str]) -> None:
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _mark(meta: Json, now: str) -> None:
    before = meta.get("deletionTimestamp")
    if not before and meta.get("generation", 0) > 0:
        meta["generation"] += 1
    # Texts of whole seconds in UTC compare as times do.
    if not before or before > now:
        meta["deletionTimestamp"] = now


def _is_namespace(body: Json) -> bool:
    return (body.get("apiVersion"), body.get("kind")) == ("v1", "Namespace")
