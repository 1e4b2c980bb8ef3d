"""Events, in both of their versions; they are stored in that of core.

``events.k8s.io/v1`` has other names for the same fields and stricter rules (all of which hold for the object of core).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from mirror.batch.quoting import json_text
from mirror.batch.syntax import qualified_name_problems, size, subdomain_problems
from mirror.batch.violations import IMMUTABLE, Violation, invalid, invalid_text, invalid_texts, required
from mirror.embedded.apiserver.apimachinery import printing
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import same
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import CORE_REFUSAL, Builtin
from mirror.embedded.apiserver.registry.object_meta import micro
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.validation import metadata

_LONGEST, _LONGEST_NOTE = 128, 1024
_TYPES = ("Normal", "Warning")
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_RENAMED: Mapping[str, str] = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
"""Fields of ``events.k8s.io/v1`` → of core."""
_CORE_NAMES = {core: name for name, core in _RENAMED.items()}
_ALWAYS_SERVED = ("reportingComponent", "reportingInstance")
"""By core, even if empty; by the other only if there is something."""

_FIXED = (
    ("involvedObject", "ObjectReference"),
    ("reason", "s"),
    ("message", "s"),
    ("source", "EventSource"),
    ("firstTimestamp", "t"),
    ("lastTimestamp", "t"),
    ("count", "i"),
    ("reason", "s"),
    ("type", "s"),
    ("eventTime", "m"),
    ("action", "s"),
    ("related", "*ObjectReference"),
    ("reportingController", "s"),
    ("reportingInstance", "s"),
)


class Events(Builtin):
    """As core has them."""

    struct = "Event"
    allows_create_on_update = True
    default_propagation = ""
    selector_refusal = CORE_REFUSAL
    columns = (
        Column("Last Seen", description=TEXTS["EVENT_LAST"]),
        Column("Type", description=TEXTS["EVENT_TYPE"]),
        Column("Reason", description=TEXTS["EVENT_REASON"]),
        Column("Object", description=TEXTS["EVENT_OBJECT"]),
        Column("Subobject", priority=1, description=TEXTS["EVENT_FIELD_PATH"]),
        Column("Source", priority=1, description=TEXTS["EVENT_SOURCE"]),
        Column("Message", description=TEXTS["EVENT_MESSAGE"]),
        Column("First Seen", priority=1, description=TEXTS["EVENT_FIRST"]),
        Column("Count", priority=1, description=TEXTS["EVENT_COUNT"]),
        Column("Name", format="name", priority=1, description=TEXTS["NAME"]),
    )
    is_strict: ClassVar[bool] = False

    def __init__(self) -> None:
        self.selectable = {
            **{f"involvedObject.{name}": _of("involvedObject", name) for name in _INVOLVED},
            **{name: _of(name) for name in ("reason", "type", "reportingComponent")},
            "source": lambda body: str(body["source"].get("component") or body.get("reportingComponent") or ""),
        }

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        found = list(_check(body, "reportingController" if self.is_strict else "reportingComponent"))
        return [*found, *_check_strict_create(body)] if self.is_strict else found

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        found = list(_check(new, "reportingController" if self.is_strict else "reportingComponent"))
        return [*found, *_check_strict_update(new, old)] if self.is_strict else found

    def cells(self, body: Json, now: datetime) -> list[object]:
        involved, series = body["involvedObject"], body.get("series")
        first = printers.since(body.get("firstTimestamp") or body.get("eventTime"), now)
        last, count = body.get("lastTimestamp"), body.get("count") or 1
        seen = printers.since(last, now) if last else first
        if series is not None:
            seen, count = printers.since(series.get("lastObservedTime"), now), series.get("count", 0)
        kind, name = involved.get("kind", "").lower(), involved.get("name", "")
        return [
            seen,
            body.get("type", ""),
            body.get("reason", ""),
            f"{kind}/{name}" if name else kind,
            involved.get("fieldPath", ""),
            _source(body),
            body.get("message", "").strip(),
            first,
            count,
            body["metadata"]["name"],
        ]


class NewEvents(Events):
    """As ``events.k8s.io/v1`` has them; rules and rows are made of the object as core has it."""

    struct = "EventsV1Event"
    is_strict = True
    is_converted = True
    stored_group = ""

    def __init__(self) -> None:
        self.selectable = {
            **{f"regarding.{name}": _of("regarding", name) for name in _INVOLVED},
            **{name: _of(name) for name in ("reason", "type", "reportingController")},
        }

    def from_stored(self, stored: Json) -> Json:
        found = {_CORE_NAMES.get(name, name): value for name, value in stored.items()}
        found["apiVersion"] = "events.k8s.io/v1"
        for name in _ALWAYS_SERVED:
            new_name = _CORE_NAMES.get(name, name)
            if not found.get(new_name):
                found.pop(new_name, None)
        return found

    def to_stored(self, body: Json) -> Json:
        found = {_RENAMED.get(name, name): value for name, value in body.items()}
        found["apiVersion"] = "v1"
        for name in _ALWAYS_SERVED:
            found.setdefault(name, "")
        return found

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        return super().check_create(self.to_stored(body), context)

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return super().check_update(self.to_stored(new), self.to_stored(old), context)

    def cells(self, body: Json, now: datetime) -> list[object]:
        return super().cells(self.to_stored(body), now)


def _of(*path: str) -> Any:
    def text(body: Json) -> str:
        value: Any = body
        for name in path:
            value = value.get(name) or {}
        return value if isinstance(value, str) else ""

    return text


def _source(body: Json) -> str:
    component = body["source"].get("component") or body.get("reportingComponent") or ""
    instance = body["source"].get("host") or body.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _check(event: Json, controller_field: str) -> Iterator[Violation]:
    """The rules of both versions; an event without eventTime is one of the old sort, of which little is asked."""
    namespace, involved = event["metadata"].get("namespace", ""), event["involvedObject"].get("namespace", "")
    if event.get("eventTime"):
        if not involved and namespace not in ("default", "kube-system"):
            yield _wrong_namespace(involved)
        yield from _check_reported(event, controller_field)
    elif namespace != involved if involved else namespace not in ("", "default"):
        yield _wrong_namespace(involved)
    yield from invalid_texts("namespace", namespace, subdomain_problems(namespace))


def _wrong_namespace(involved: str) -> Violation:
    return invalid_text("involvedObject.namespace", involved, "does not match event.namespace")


def _check_reported(event: Json, controller_field: str) -> Iterator[Violation]:
    controller = event.get("reportingComponent", "")
    if not controller:
        yield required(controller_field)
    yield from invalid_texts(controller_field, controller, qualified_name_problems(controller))
    for name in ("reportingInstance", "action", "reason"):
        value = event.get(name, "")
        if not value:
            yield required(name)
        if size(value) > _LONGEST:
            yield invalid_text(name, "", f"can have at most {_LONGEST} characters")
    if size(event.get("message", "")) > _LONGEST_NOTE:
        yield invalid_text("message", "", f"can have at most {_LONGEST_NOTE} characters")


def _check_strict_create(event: Json) -> Iterator[Violation]:
    yield from metadata.check_meta(event["metadata"])
    yield from _check_series(event.get("series"))
    if not event.get("eventTime"):
        yield required("eventTime")
    if event.get("type") not in _TYPES:
        yield invalid_text("type", "", f"has invalid value: {event.get('type', '')}")
    for name in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(name):
            yield invalid_text(name, "", "needs to be unset")
    if event["source"].get("component") or event["source"].get("host"):
        yield invalid_text("source", "", "needs to be unset")


def _check_series(series: Json | None) -> Iterator[Violation]:
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield invalid_text("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


def _check_strict_update(new: Json, old: Json) -> Iterator[Violation]:
    yield from metadata.check_meta_update(new, old)
    if not same(new.get("series"), old.get("series")):
        yield from _check_series(new.get("series"))
    for name, kind in _FIXED:
        stored = _RENAMED.get(name, name)
        value, old_value = new.get(stored), old.get(stored)
        if name == "eventTime" and value and old_value and micro(value) == micro(old_value):
            continue
        if not same(value or None, old_value or None):
            printed = json_text(value or "") if kind == "s" else printing.text(value, kind)
            yield invalid(name, printed, IMMUTABLE)


def kinds() -> list[Kind]:
    """``v1`` and ``events.k8s.io/v1`` ``events``."""
    return [
        Kind("", "v1", "Event", "events", Events(), singular="event", short_names=("ev",)),
        Kind(
            "events.k8s.io",
            "v1",
            "Event",
            "events",
            NewEvents(),
            singular="event",
            short_names=("ev",),
            storage="events",
        ),
    ]
