"""Asks both servers about changes: objects of a loose definition, which becomes strict, are replaced and patched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from e2e.rule_differential import answers, transitions
from e2e.rule_differential.answers import CRDS, Json, Report, Said, by_place, warnings_by_place
from e2e.rule_differential.transitions import Place
from tests.contract.answer import Answer
from tests.contract.api import Api

PLACES = (24, 24, 3)
"""In one definition: many that refuse nearly every change, or few, so that some are accepted."""
OBJECTS = 10
CHANGES = 5
"""Of each object; all of it as it was made, since none is stored."""
_OF_STATUS = 4
"""Every so manieth place is in the status, which is changed apart."""
_PART = {True: "status", False: "spec"}
_PROBE = "probe"
_ROOT_RULES = (
    "self.metadata.name == oldSelf.metadata.name && self.kind == oldSelf.kind",
    "has(self.status) == has(oldSelf.status)",
    "self == oldSelf",
    "size(self.metadata.name) > 2",
    "self.spec == oldSelf.spec || self.status == oldSelf.status",
)
_SPEC_RULES = ("self == oldSelf", "has(self.probe)", "has(self.probe) == has(oldSelf.probe)")
_KIND_RULES = ("self != oldSelf", "self == 'Thing'")


async def compare(real: Api, ours: Api, plural: str, chance: Random, report: Report) -> None:
    """One definition, some objects, and some changes of each."""
    places = {
        f"p{number}": transitions.place(chance, is_blocking=number == 0) for number in range(chance.choice(PLACES))
    }
    around = _around(chance)
    kept = await _agreed(real, ours, plural, places, around, report)
    while len(kept) < len(places):  # some faults of a definition hide others
        places = kept
        kept = await _agreed(real, ours, plural, places, around, report)
    await answers.create_definition((real, ours), _definition(plural, {name: one.loose for name, one in kept.items()}))
    asking = _Asking(real, ours, answers.path_of(plural), kept, json.dumps(around), report)
    made = [await _made(asking, plural, f"o{number}", chance) for number in range(OBJECTS)]
    become = _definition(plural, {name: one.strict for name, one in kept.items()}, around)
    for api in (real, ours):
        await _become_strict(api, plural, become)
    for objects in made:
        for _ in range(CHANGES):
            await _change(asking, objects, chance)


async def _agreed(
    real: Api, ours: Api, plural: str, places: Mapping[str, Place], around: Json, report: Report
) -> dict[str, Place]:
    """Those that both accept."""
    strict = _definition(plural, {name: one.strict for name, one in places.items()}, around)
    shown = {name: one.shown for name, one in places.items()}
    return {name: places[name] for name in await answers.agreed(real, ours, strict, shown, report)}


class _Asking(NamedTuple):
    real: Api
    ours: Api
    path: str
    places: Mapping[str, Place]
    around: str
    """Rules that are in no place."""
    report: Report

    @property
    def apis(self) -> Sequence[Api]:
        return (self.real, self.ours)


def _around(chance: Random) -> Json:
    """Rules of the whole object and of its parts, now and then."""
    found = {"root": _ROOT_RULES, "spec": _SPEC_RULES, "kind": _KIND_RULES, "name": _KIND_RULES}
    return {place: [{"rule": chance.choice(rules)}] for place, rules in found.items() if chance.random() < 0.15}


def _definition(plural: str, places: Mapping[str, Json], around: Json | None = None) -> Json:
    """A definition; a strict one has rules around its places and refuses a probe."""
    parts: Json = {part: {"type": "object", "properties": {}} for part in _PART.values()}
    for name, of_place in places.items():
        parts[_PART[_is_of_status(name)]]["properties"][name] = of_place
    parts["spec"]["properties"][_PROBE] = {"type": "integer"}
    schema: Json = {"type": "object", "properties": parts}
    if around is not None:
        word = "x-kubernetes-validations"
        parts["spec"]["properties"][_PROBE][word] = [{"rule": "self != 1"}]
        if "root" in around:
            schema[word] = around["root"]
        if "spec" in around:
            parts["spec"][word] = around["spec"]
        if "kind" in around:
            parts["kind"] = {"type": "string", word: around["kind"]}
        if "name" in around:
            parts["metadata"] = {"type": "object", "properties": {"name": {"type": "string", word: around["name"]}}}
    return answers.definition(plural, schema, subresources={"status": {}})


def _is_of_status(name: str) -> bool:
    return int(name[1:]) % _OF_STATUS == _OF_STATUS - 1


async def _made(asking: _Asking, plural: str, name: str, chance: Random) -> list[Json]:
    """An object as the servers have stored it."""
    may_repeat = chance.random() < 0.1
    parts: Json = {"spec": {}, "status": {}}
    for place in asking.places:
        if chance.random() < 0.9:
            part = parts[_PART[_is_of_status(place)]]
            part[place] = transitions.first(chance, may_repeat=may_repeat and chance.random() < 0.2)
    found = []
    for api in asking.apis:
        (await api.post(asking.path, answers.body_of(plural, name, spec=parts["spec"]))).ok(201)
        patched = await api.patch(f"{asking.path}/{name}/status", {"status": parts["status"]})
        found.append(patched.ok(200))
    return found


async def _become_strict(api: Api, plural: str, strict: Json) -> None:
    """The definition is changed, and in force: a real server learns of it a moment later, of all its parts at once."""
    name = strict["metadata"]["name"]
    (await api.patch(f"{CRDS}/{name}", {"spec": {"versions": strict["spec"]["versions"]}})).ok(200)
    probe = answers.body_of(plural, _PROBE, spec={_PROBE: 1})
    await api.repeat(
        partial(api.post, f"{answers.path_of(plural)}?dryRun=All", probe),
        lambda answer: f"spec.{_PROBE}" in answer.text and answer.status == 422,
    )


async def _change(asking: _Asking, objects: Sequence[Json], chance: Random) -> None:
    """Replace or patch an object on both servers, and compare what they say."""
    old, of_status, is_patch = objects[0], chance.random() < 0.25, chance.random() < 0.35
    part = _PART[of_status]
    new = {}
    for place in asking.places:
        before = old.get(part, {}).get(place)
        if _is_of_status(place) != of_status or (before is not None and chance.random() < 0.05):
            continue
        new[place] = transitions.changed(chance, before) if before is not None else None
        if before is None and chance.random() < 0.3:
            new[place] = transitions.first(chance, may_repeat=False)
    new = {place: one for place, one in new.items() if one is not None}
    target = f"{asking.path}/{old['metadata']['name']}{'/status' if of_status else ''}?dryRun=All"
    if is_patch:
        patch = {part: transitions.merge_patch(old.get(part, {}), new)}
        asks = [partial(api.patch, target, patch) for api in asking.apis]
    else:
        asks = [partial(api.put, target, {**one, part: new}) for api, one in zip(asking.apis, objects, strict=True)]
    real, ours = [await ask() for ask in asks]
    asking.report.asked["changes"] += 1
    asking.report.asked["refused changes"] += real.status >= 300
    for place in ("", *asking.places):
        theirs, own = (_said(answer, place) for answer in (real, ours))
        if answers.is_crash(theirs[0], place):
            asking.report.asked["crashed there"] += 1
            continue
        _count(asking.report, place, theirs)
        if theirs == own:
            continue
        rule = asking.places[place].shown if place else asking.around
        for _ in range(answers.ORDERS if answers.depends_on_order(rule) else 0):
            if _said(await asks[0](), place) == own:
                asking.report.asked["depends on a map's order"] += 1
                break
        else:
            values = [json.dumps(one, ensure_ascii=False) for one in _values(old, {**old, part: new}, place or part)]
            asking.report.differ(
                f"{'PATCH' if is_patch else 'PUT'} {part} with {rule}\n"
                f"  of {values[0]}\n  to {values[1]}\n  real: {theirs}\n  ours: {own}"
            )


def _said(answer: Answer, place: str) -> tuple[Said, Said, object]:
    """What an answer says of a place: causes, warnings, and what became of the value."""
    causes, warnings = by_place(answer), warnings_by_place(answer)
    found = None
    if not place:
        found = answer.status
    elif answer.status < 300:
        found = answer.body.get(_PART[_is_of_status(place)], {}).get(place)
    return _only(causes, place), _only(warnings, place), found


def _only(said: Said, place: str) -> Said:
    return {place: said[place]} if place in said else {}


def _values(old: Json, new: Json, place: str) -> tuple[object, object]:
    if place in _PART.values():
        return old.get(place), new.get(place)
    part = _PART[_is_of_status(place)]
    return old.get(part, {}).get(place), new.get(part, {}).get(place)


def _count(report: Report, place: str, said: tuple[Said, Said, object]) -> None:
    if place:
        report.asked["judged changes of values"] += 1
        report.asked["refused changes of values"] += bool(said[0])
        report.asked["eased changes of values"] += bool(said[1])
