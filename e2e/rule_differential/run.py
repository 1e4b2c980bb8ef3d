"""Asks both servers: definitions with many rules each, then objects of those that both accept."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, TypeAlias

from e2e.rule_differential.expressions import SCHEMA, expression, value
from tests.contract.answer import Answer
from tests.contract.api import Api

Json: TypeAlias = dict[str, Any]
RULES = 40
"""In one definition."""
OBJECTS = 25
ORDERS = 40
"""How often a real server is asked before it is taken to say the same of a map in every order: each has a few keys."""
_WALKS_A_MAP = "self.m."
_CRDS = "customresourcedefinitions"
_PLACE = re.compile(r"(?:properties\[|^spec\.)(p\d+)")
_OBJECT = re.compile(r"selfType\d+[\w.@]*|\bobject\d+\b")
_NO_OVERLOAD = re.compile(r"no such overload(?:: [@\w.]+)?(?:\([^)]*\))?")
"""Of some functions a real server tells the name or the types, too."""
_COST = "estimated rule cost"


@dataclass(slots=True)
class Report:
    """What was asked, and where the servers differ."""

    asked: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


async def compare(real: Api, ours: Api, *, seed: int, rounds: int) -> Report:
    """Ask both the same, so many rounds long."""
    report = Report()
    for number in range(rounds):
        chance = Random(f"{seed} {number}")
        rules = {f"p{position}": expression(chance) for position in range(RULES)}
        await _round(real, ours, f"rules{seed}x{number}", rules, chance, report)
    return report


async def _round(real: Api, ours: Api, plural: str, rules: Mapping[str, str], chance: Random, report: Report) -> None:
    definition = _definition(plural, rules)
    refused = [_by_place(await api.post(f"{_CRDS}?dryRun=All", definition)) for api in (real, ours)]
    kept: dict[str, str] = {}
    for place, rule in rules.items():
        theirs, own = (one.get(place, []) for one in refused)
        if any(_COST in one or "contributed to" in one for one in theirs):
            report.asked["too costly by their estimate"] += 1
        elif theirs != own:
            report.differences.append(f"{rule}\n  real: {theirs}\n  ours: {own}")
        elif theirs:
            report.asked["refused rules"] += 1
        else:
            kept[place] = rule
            report.asked["accepted rules"] += 1
    for api in (real, ours):
        (await api.post(_CRDS, _definition(plural, kept))).ok(201)
    path = f"/apis/rules.example.com/v1/namespaces/default/{plural}"
    for api in (real, ours):
        await api.repeat(partial(api.get, path), lambda answer: answer.status == 200)
    for number in range(OBJECTS):
        spec = {place: value(chance) for place in kept}
        body = {
            "apiVersion": "rules.example.com/v1",
            "kind": plural.title(),
            "metadata": {"name": f"o{number}"},
            "spec": spec,
        }
        judged, ours_judged = [_by_place(await api.post(f"{path}?dryRun=All", body)) for api in (real, ours)]
        for place, rule in kept.items():
            if any("internal error" in one for one in judged.get(place, ())):
                report.asked["crashed there"] += 1
                continue
            report.asked["judged values"] += 1
            report.asked["refused values"] += place in judged
            if judged.get(place) != ours_judged.get(place):
                if _WALKS_A_MAP in rule and await _may_also_say(real, path, body, place, ours_judged.get(place)):
                    report.asked["depends on a map's order"] += 1
                    continue
                shown = json.dumps(spec[place], ensure_ascii=False)
                report.differences.append(
                    f"{rule} of {shown}\n  real: {judged.get(place)}\n  ours: {ours_judged.get(place)}"
                )


async def _may_also_say(api: Api, path: str, body: Json, place: str, wanted: list[str] | None) -> bool:
    """Whether it judges the same object like this, too: where it walks a map it does so in any order."""
    for _ in range(ORDERS):
        if _by_place(await api.post(f"{path}?dryRun=All", body)).get(place) == wanted:
            return True
    return False


def _definition(plural: str, rules: Mapping[str, str]) -> Json:
    properties = {place: {**SCHEMA, "x-kubernetes-validations": [{"rule": rule}]} for place, rule in rules.items()}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural.title()}
    spec = {"group": "rules.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.rules.example.com"}, "spec": spec}


def _by_place(answer: Answer) -> dict[str, list[str]]:
    """The causes of a refusal, by the field whose rule they are about."""
    found: dict[str, list[str]] = {}
    if answer.status < 300:
        return found
    said = json.loads(answer.text)
    for cause in (said.get("details") or {}).get("causes") or [{"message": said["message"], "field": "spec.p-1"}]:
        place = _PLACE.search(cause["field"])
        message = _NO_OVERLOAD.sub("no such overload", _OBJECT.sub("<object>", cause["message"]))
        found.setdefault(place.group(1) if place else "", []).append(message)
    return found
