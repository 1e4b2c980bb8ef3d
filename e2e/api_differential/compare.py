"""Whether two answers say the same, and how they differ.

Lenient only where the server itself is not exact: values of Go's own types (E5), the order of maps (C32).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from e2e.api_differential.steps import Json
from e2e.api_differential.wire import PANIC, Answer
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.apimachinery.errors import invalid

Cause: TypeAlias = tuple[str, str, str]

_MADE_UP = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink")
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KEY = re.compile(r"\[[^\]]*[^\]\d][^\]]*\]$")
# Go walks maps in any order, so what it complains of in one of them comes in any order.
_MAP = re.compile(r".*(\.options|\.labels|\.annotations|\.matchLabels|\.nodeSelector|\.limits|\.requests)")
_VALUE = re.compile(r"(Invalid value|Unsupported value|Duplicate value): ")
_DECODER = json.JSONDecoder()


def differences(real: Answer, ours: Answer) -> list[str]:
    """What differs, in a line each; empty when the answers say the same."""
    if real.code == PANIC:
        is_refused = any(field == "spec.completions" for field, _, _ in ours.causes)
        return [] if is_refused else ["C32: the server panicked, and ours did not refuse the completions"]
    if real.code != ours.code:
        return [f"code: {real.code} but ours {ours.code}", *_first_causes(real, ours)]
    found = []
    if real.warnings != ours.warnings:
        found.append(f"warnings: {list(real.warnings)} but ours {list(ours.warnings)}")
    if real.is_accepted:
        return [*found, *_object_differences("", _kept(real.body), _kept(ours.body))]
    return [*found, *_cause_differences(real, ours), *_envelope_differences(real)]


def _first_causes(real: Answer, ours: Answer) -> Iterator[str]:
    for name, answer in (("theirs", real), ("ours", ours)):
        if not answer.is_accepted:
            yield f"{name}: {answer.causes[:4] or answer.body.get('message')}"


def _cause_differences(real: Answer, ours: Answer) -> Iterator[str]:
    theirs, mine = _ordered(real.causes), _ordered(ours.causes)
    if len(theirs) == len(mine) and all(map(is_same, theirs, mine)):
        return
    yield from (f"cause: only theirs: {one}" for one in _only(theirs, mine))
    yield from (f"cause: only ours: {one}" for one in _only(mine, theirs))
    yield f"causes: {[one[0] for one in theirs]} but ours {[one[0] for one in mine]}"


def _only(these: Sequence[Cause], those: Sequence[Cause]) -> list[Cause]:
    left = list(those)
    only = []
    for one in these:
        same = next((other for other in left if is_same(one, other) or is_same(other, one)), None)
        if same is None:
            only.append(one)
        else:
            left.remove(same)
    return only


def _ordered(causes: Iterable[Cause]) -> list[Cause]:
    """The causes without the server's uids, and those of one map in one order."""
    clean = [(field, reason, _UID.sub("<uid>", message)) for field, reason, message in causes]
    ordered: list[Cause] = []
    for name, group in groupby(clean, key=lambda one: _KEY.sub("", one[0])):
        causes_of_one = list(group)
        ordered += sorted(causes_of_one) if _MAP.fullmatch(name) else causes_of_one
    return ordered


def is_same(theirs: Cause, mine: Cause) -> bool:
    """E5: where the value is one of Go's own types, only what follows it counts."""
    if theirs == mine:
        return True
    kind = _VALUE.match(theirs[2])
    if theirs[:2] != mine[:2] or kind is None or not mine[2].startswith(kind[0]):
        return False
    value = theirs[2][kind.end() :]
    if not value.startswith(("{", "[")):
        return False
    try:
        end = _DECODER.raw_decode(value)[1]
    except ValueError:
        return False
    return mine[2].endswith(value[end:])


def _envelope_differences(real: Answer) -> Iterator[str]:
    """E1, E2: whether the server's own causes, in our envelope, are what the server sent."""
    name = real.body["details"].get("name", "")
    ours = invalid("Job", "batch", name, [Violation(*cause) for cause in real.causes])
    yield from _object_differences("", real.body, ours.status)


def _kept(body: Json) -> Json:
    kept = copy.deepcopy(body)
    for name in _MADE_UP:
        kept["metadata"].pop(name, None)
    return kept


def _object_differences(path: str, real: object, ours: object) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for name in sorted(real.keys() | ours.keys()):
            where = f"{path}.{name}" if path else str(name)
            if name not in ours:
                yield f"{where}: missing, theirs is {_short(real[name])}"
            elif name not in real:
                yield f"{where}: only ours: {_short(ours[name])}"
            else:
                yield from _object_differences(where, real[name], ours[name])
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for position, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from _object_differences(f"{path}[{position}]", one, other)
    elif real != ours or type(real) is not type(ours):
        yield f"{path}: {_short(real)} but ours {_short(ours)}"


def _short(value: object) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"
