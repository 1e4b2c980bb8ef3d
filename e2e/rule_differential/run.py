"""Asks both servers: definitions with many rules each, then objects of those that both accept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from random import Random

from e2e.rule_differential import answers, updates
from e2e.rule_differential.answers import Json, Report, by_place
from e2e.rule_differential.expressions import SCHEMA, expression, value
from tests.contract.api import Api

RULES = 40
"""In one definition."""
OBJECTS = 25


async def compare(real: Api, ours: Api, *, seed: int, rounds: Iterable[int], report: Report) -> None:
    """Ask both the same in each round: objects of one definition are created, and those of another are changed."""
    for number in rounds:
        chance = Random(f"{seed} {number}")
        rules = {f"p{position}": expression(chance) for position in range(RULES)}
        await _creates(real, ours, f"rules{seed}x{number}", rules, chance, report)
        await updates.compare(real, ours, f"updates{seed}x{number}", Random(f"{seed} {number} updates"), report)
        report.asked["rounds"] += 1


async def _creates(real: Api, ours: Api, plural: str, rules: Mapping[str, str], chance: Random, report: Report) -> None:
    accepted = await answers.agreed(real, ours, _definition(plural, rules), rules, report)
    kept = {place: rules[place] for place in accepted}
    await answers.create_definition((real, ours), _definition(plural, kept))
    path = answers.path_of(plural)
    for number in range(OBJECTS):
        spec = {place: value(chance) for place in kept}
        body = answers.body_of(plural, f"o{number}", spec=spec)
        judged, ours_judged = [by_place(await api.post(f"{path}?dryRun=All", body)) for api in (real, ours)]
        for place, rule in kept.items():
            if answers.is_crash(judged, place):
                report.asked["crashed there"] += 1
                continue
            report.asked["judged values"] += 1
            report.asked["refused values"] += place in judged
            if judged.get(place) != ours_judged.get(place):
                if await _may_also_say(real, path, body, place, rule, ours_judged.get(place)):
                    report.asked["depends on a map's order"] += 1
                    continue
                shown = json.dumps(spec[place], ensure_ascii=False)
                report.differ(f"{rule} of {shown}\n  real: {judged.get(place)}\n  ours: {ours_judged.get(place)}")


async def _may_also_say(api: Api, path: str, body: Json, place: str, rule: str, wanted: list[str] | None) -> bool:
    """Whether it judges the same object like this, too, where the rule walks a map."""
    for _ in range(answers.ORDERS if answers.depends_on_order(rule) else 0):
        if by_place(await api.post(f"{path}?dryRun=All", body)).get(place) == wanted:
            return True
    return False


def _definition(plural: str, rules: Mapping[str, str]) -> Json:
    properties = {place: {**SCHEMA, "x-kubernetes-validations": [{"rule": rule}]} for place, rule in rules.items()}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return answers.definition(plural, schema)
