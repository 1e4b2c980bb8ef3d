"""What is inside a mirror, as parts of a Job's page: its pods, events, and both manifests side by side. Pure.

What comes here was read and bounded by ``access``; every text in it is a worker's, and is escaped like all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Any

import yaml
from markupsafe import Markup

from mirror.page.badges import badge
from mirror.page.markup import join, tag
from mirror.page.times import when
from mirror.page.visiting import Bodies
from mirror.workers.pod_why import container_statuses, why_of

MOST_ROWS = 500
MOST_LINES = 1_500
"""Of the manifests, together."""
MOST_PAIRS = 20_000
"""Of equal lines, one in each manifest, that are all looked at: a worker may send any."""
_NOISE = ("kubectl.kubernetes.io/last-applied-configuration",)

Json = Mapping[str, Any]


def pods(found: Json, now: datetime) -> Markup:
    """The mirror's pods; each container, init containers first, is a way to its log."""
    rows = [_pod(_mapping(pod), now) for pod in islice(_items(found.get("items")), MOST_ROWS)]
    if not rows:
        return tag("p", "The mirror has no pods.", class_="nothing")
    more = (
        tag("p", "There are more pods.", class_="nothing") if _mapping(found.get("metadata")).get("continue") else None
    )
    return join(_table(("Pod", "State", "Ready", "Restarts", "Node", "Started", "Logs"), rows, "Pods"), more)


def events(found: Json, now: datetime) -> Markup:
    """Events of the mirror and its pods, newest first."""
    listed = [_mapping(event) for event in islice(_items(found.get("items")), MOST_ROWS)]
    if not listed:
        return tag("p", "The worker has no events of the mirror or its pods.", class_="nothing")
    rows = [_event(event, now) for event in sorted(listed, key=_seen_at, reverse=True)]
    return _table(("When", "Reason", "Object", "Message"), rows, "Events")


def manifests(found: Bodies) -> Markup:
    """Source and mirror line by line, what differs marked."""
    try:
        left, right = _lines(found.source), _lines(found.mirror) if found.mirror is not None else []
    except RecursionError:
        return tag("p", "The manifests are nested too deeply to be shown here.", class_="nothing")
    if len(left) + len(right) > MOST_LINES:
        return tag("p", "The manifests are too long to be shown here.", class_="nothing")
    heads = ("Source", f"Mirror on {found.worker}" if found.mirror is not None else "Mirror")
    note = tag("p", found.because, class_="nothing") if found.because else None
    if found.mirror is None:
        rows = [_pair("", line, None) for line in left]
    else:
        rows = [_pair(*row) for row in _aligned(left, right)]
    head = tag("tr", [tag("th", text, scope="col", role="columnheader") for text in heads], role="row")
    table = tag(
        "table",
        tag("caption", "Manifests", class_="unseen"),
        tag("thead", head, role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        role="table",
        class_="manifests",
    )
    return join(note, table)


_Row = tuple[str, str | None, str | None]


def _aligned(left: list[str], right: list[str]) -> Iterator[_Row]:
    """Lines that belong together beside each other: equal ones, and of what differs those of the same field."""
    for kind, begin, end, begin_right, end_right in _opcodes(left, right):
        here, there = left[begin:end], right[begin_right:end_right]
        if kind == "equal":
            yield from (("", one, one) for one in here)
            continue
        for _, *part in _opcodes([_field(one) for one in here], [_field(one) for one in there]):
            yield from (("differs", *pair) for pair in zip_longest(here[part[0] : part[1]], there[part[2] : part[3]]))


def _opcodes(left: list[str], right: list[str]) -> list[tuple[str, int, int, int, int]]:
    """How one becomes the other; lines that are everywhere are no landmarks where they would take seconds."""
    here, there = Counter(left), Counter(right)
    pairs = sum(count * there[line] for line, count in here.items())
    return list(SequenceMatcher(None, left, right, autojunk=pairs > MOST_PAIRS).get_opcodes())


def _field(line: str) -> str:
    return line.partition(":")[0]


def _pair(kind: str, left: str | None, right: str | None) -> Markup:
    sides = [
        tag("td", text or "", role="cell", class_=None if not kind else "absent" if text is None else side)
        for text, side in ((left, "minus"), (right, "plus"))
    ]
    return tag("tr", sides, role="row", class_=kind or None)


def _lines(body: Json) -> list[str]:
    metadata = dict(_mapping(body.get("metadata")))
    metadata.pop("managedFields", None)
    annotations = {key: text for key, text in _mapping(metadata.get("annotations")).items() if key not in _NOISE}
    metadata |= {"annotations": annotations} if annotations else {}
    shown = {key: value for key, value in {**body, "metadata": metadata}.items() if value not in (None, {}, [], "")}
    text = yaml.dump(shown, Dumper=_Dumper, sort_keys=True, width=200, allow_unicode=True)
    return text.splitlines()


class _Dumper(yaml.SafeDumper):
    """Without anchors, which manifests do not have."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _pod(pod: Json, now: datetime) -> Markup:
    metadata, spec, status = (_mapping(pod.get(part)) for part in ("metadata", "spec", "status"))
    init, main = (
        [_text(_mapping(one).get("name")) for one in _items(spec.get(part))]
        for part in ("initContainers", "containers")
    )
    state, why = _text(status.get("phase")) or "Unknown", why_of(pod)
    ready = sum(_mapping(one).get("ready") is True for one in _items(status.get("containerStatuses")))
    restarts = sum(map(_number, container_statuses(status)))
    name = _text(metadata.get("name"))
    logs = [
        tag("button", one, type="button", data_pod=name, data_container=one, aria_label=f"Log of {one} in {name}")
        for one in (*init, *main)
    ]
    return _row(
        tag("th", name, scope="row", role="rowheader"),
        join(badge(state), tag("span", f" {why}", class_="muted") if why else None),
        f"{ready}/{len(main)}",
        str(restarts),
        _text(spec.get("nodeName")) or "–",
        when(_text(status.get("startTime")), now),
        join(*logs),
    )


def _event(event: Json, now: datetime) -> Markup:
    about = _mapping(event.get("involvedObject"))
    kind = "bad" if event.get("type") == "Warning" else ""
    count = event.get("count")
    times = tag("span", f" ×{count}", class_="muted") if isinstance(count, int) and count > 1 else None
    return _row(
        when(_seen_at(event), now),
        join(tag("span", _text(event.get("reason")), class_=kind or None), times),
        f"{_text(about.get('kind'))} {_text(about.get('name'))}",
        _text(event.get("message")),
    )


def _seen_at(event: Json) -> str:
    found = (
        event.get("lastTimestamp"),
        event.get("eventTime"),
        _mapping(event.get("metadata")).get("creationTimestamp"),
    )
    return next((text for text in map(_text, found) if text), "")


def _table(heads: tuple[str, ...], rows: list[Markup], name: str) -> Markup:
    head = tag("tr", [tag("th", text, scope="col", role="columnheader") for text in heads], role="row")
    table = tag(
        "table",
        tag("caption", name, class_="unseen"),
        tag("thead", head, role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        role="table",
        class_="listed",
    )
    return tag("div", table, class_="wide", tabindex="0", role="region", aria_label=name)


def _row(*cells: Markup | str) -> Markup:
    return tag(
        "tr",
        [one if one.startswith("<th") and isinstance(one, Markup) else tag("td", one, role="cell") for one in cells],
        role="row",
    )


def _mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(status: Json) -> int:
    count = status.get("restartCount")
    return count if isinstance(count, int) else 0
