"""What differs between a source and its mirror, for people, where the kind is data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mirror.kinds.declared.form import Form
from mirror.kinds.own_annotations import mistakes
from mirror.kinds.report import OURS, PENDING, STRIPPED, WORKER, Caution, Difference, Report
from mirror.kube.objects import Object
from mirror.model import field_paths
from mirror.model.field_paths import Place
from mirror.model.text import clean

Json = Any

MOST = 200
_LONGEST_VALUE = 200
_STRIPPED = "the worker's own controller runs the mirror"
_REPLACED = "replaced, as the entry of its kind says"
_KEPT = "suspended, so that it cannot begin anew after its end"
_encode = msgspec.json.Encoder(order="deterministic").encode


def before(form: Form, source: Object, *, managed_by: str) -> Report:
    """What will differ once this source is mirrored."""
    return _report(_stripped(form, source), _cautions(form, source, managed_by))


def between(
    form: Form,
    source: Object,
    mirror: Object,
    *,
    wanted: Mapping[str, Json],
    managed_by: str,
    is_kept_from_beginning_anew: bool = False,
) -> Report:
    """What differs now."""
    have = {"spec": mirror.spec_dict()}
    kept = (_kept(form, source),) if is_kept_from_beginning_anew else ()
    found = (*_stripped(form, source), *kept, *_others({"spec": wanted["spec"]}, have, ()))
    return _report(iter(found), _cautions(form, source, managed_by))


def _report(found: Iterator[Difference], cautions: Iterator[Caution]) -> Report:
    listed = list(found)
    return Report(differences=tuple(listed[:MOST]), cautions=tuple(cautions)[:MOST], is_cut=len(listed) > MOST)


def _stripped(form: Form, source: Object) -> Iterator[Difference]:
    whole = {"spec": source.spec_dict()}
    for path in form.strip:
        for place in path.places(whole):
            value = field_paths.at(whole, place)
            if value is not None:
                yield Difference(
                    path=field_paths.written(place), kind=STRIPPED, source=_shown(value), because=_STRIPPED
                )

    for place, value in form.replacements(whole):
        there = field_paths.at(whole, place)
        yield Difference(
            path=field_paths.written(place),
            kind=OURS,
            source=_shown(there),
            mirror=_shown(value),
            because=_REPLACED,
        )


def _kept(form: Form, source: Object) -> Difference:
    """Of a mirror whose end its controller may withdraw (``done.withdrawable``)."""
    suspend = form.entry.suspend
    there = field_paths.at({"spec": source.spec_dict()}, tuple(suspend.path.split(".")))
    shown = None if there is None else _shown(there)
    return Difference(path=suspend.path, kind=OURS, source=shown, mirror=_shown(suspend.held), because=_KEPT)


def _others(wanted: Json, have: Json, place: Place) -> Iterator[Difference]:
    """Fields that are otherwise on the mirror than they were sent, down to the first that differs."""
    if isinstance(wanted, Mapping) and isinstance(have, Mapping):
        for key in sorted({*wanted, *have}):
            yield from _others(wanted.get(key), have.get(key), (*place, key))
    elif isinstance(wanted, list) and isinstance(have, list) and len(wanted) == len(have):
        for index, (one, other) in enumerate(zip(wanted, have, strict=True)):
            yield from _others(one, other, (*place, index))
    elif wanted != have:
        is_addition = wanted is None
        yield Difference(
            path=field_paths.written(place),
            kind=WORKER if is_addition else PENDING,
            source=None if is_addition else _shown(wanted),
            mirror=None if have is None else _shown(have),
            because="set on the worker" if is_addition else "",
        )


def _cautions(form: Form, source: Object, managed_by: str) -> Iterator[Caution]:
    spec = source.spec_dict()
    manager = form.managed_by_of(spec)
    if manager != managed_by:
        who = f"names {clean(manager)}" if manager else "is not set"
        text = f"{who}: it is mirrored only with {managed_by}, set by you or by the webhook"
        yield Caution(form.managed_by.text, text)
    if source.metadata.owner_references:
        yield Caution(
            "metadata.ownerReferences", "its owner is not on the worker; the mirror goes with this object alone"
        )
    for one in form.needed(spec):
        yield Caution(one.path, f"{one.kind} {clean(one.name)} is not copied: it has to exist on the worker")
    for text in mistakes(source, ()):
        yield Caution("metadata.annotations", text)


def _shown(value: Json) -> str:
    return clean(_encode(value).decode(), longest=_LONGEST_VALUE)
