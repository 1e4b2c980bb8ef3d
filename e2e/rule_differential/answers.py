"""What both servers say, by the place that it is about, and where they differ."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from tests.contract.answer import Answer
from tests.contract.api import Api

Json: TypeAlias = dict[str, Any]
Said: TypeAlias = dict[str, list[str]]
"""Refusals or warnings by place."""

CRDS = "customresourcedefinitions"
_GROUP = "rules.example.com"
ORDERS = 40
"""How often a real server is asked before it is taken to say the same of a map in every order: each has a few keys."""
_WALKS_A_MAP = re.compile(r"\.m\.|\[k\]|oldSelf\.(?:value|orValue|optMap)|optional\.of")
_PLACE = re.compile(r"(?:properties\[|^(?:spec|status)\.)(p\d+)")
_OBJECT = re.compile(r"selfType\d+(?:\.[\w@]+)*|\bobject\d+\b")
_NO_OVERLOAD = re.compile(r"no such overload(?:: [@\w.]+)?(?:\([^)]*\))?")
"""Of some functions a real server tells the name or the types, too."""
_COST = "estimated rule cost"


@dataclass(slots=True)
class Report:
    """What was asked, and where the servers differ."""

    asked: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    show: Callable[[str], object] = lambda _: None
    """Each difference as it is found."""

    def differ(self, difference: str) -> None:
        """The servers do."""
        self.differences.append(difference)
        self.show(difference)


def definition(plural: str, schema: Json, **version: object) -> Json:
    """Of a kind with this schema."""
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": plural, "kind": plural.title()}
    spec = {"group": _GROUP, "scope": "Namespaced", "names": names, "versions": [served]}
    return {"metadata": {"name": f"{plural}.{_GROUP}"}, "spec": spec}


def path_of(plural: str) -> str:
    """Where objects of the kind are."""
    return f"/apis/{_GROUP}/v1/namespaces/default/{plural}"


def body_of(plural: str, name: str, **more: object) -> Json:
    """An object of the kind."""
    return {"apiVersion": f"{_GROUP}/v1", "kind": plural.title(), "metadata": {"name": name}, **more}


async def agreed(real: Api, ours: Api, wanted: Json, shown: Mapping[str, str], report: Report) -> list[str]:
    """The places whose rules both accept in a definition, of those that are ``shown``."""
    refused = [by_place(await api.post(f"{CRDS}?dryRun=All", wanted)) for api in (real, ours)]
    kept = []
    for place, rule in shown.items():
        theirs, own = (one.get(place, []) for one in refused)
        if any(_COST in one or "contributed to" in one for one in theirs):
            report.asked["too costly by their estimate"] += 1
        elif theirs != own:
            report.differ(f"{rule}\n  real: {theirs}\n  ours: {own}")
        elif theirs:
            report.asked["refused rules"] += 1
        else:
            kept.append(place)
            report.asked["accepted rules"] += 1
    return kept


async def create_definition(apis: Iterable[Api], wanted: Json) -> None:
    """On all servers, each of which serves it then."""
    plural = wanted["spec"]["names"]["plural"]
    for api in apis:
        (await api.post(CRDS, wanted)).ok(201)
    for api in apis:
        await api.repeat(partial(api.get, path_of(plural)), lambda answer: answer.status == 200)


def by_place(answer: Answer) -> Said:
    """The causes of a refusal, by the place whose rules they are about; a real server walks fields in any order."""
    if answer.status < 300:
        return {}
    said = json.loads(answer.text)
    causes = (said.get("details") or {}).get("causes") or [{"message": said["message"], "field": "", "reason": ""}]
    return _sorted((one["field"], f"{one['reason']} {one['field']}: {one['message']}") for one in causes)


def warnings_by_place(answer: Answer) -> Said:
    """The warnings, likewise."""
    return _sorted((text, text) for text in answer.warnings)


def _sorted(told: Iterable[tuple[str, str]]) -> Said:
    found: Said = {}
    for about, text in told:
        place = _PLACE.search(about)
        text = _NO_OVERLOAD.sub("no such overload", _OBJECT.sub("<object>", text))
        found.setdefault(place.group(1) if place else "", []).append(text)
    return {place: sorted(texts) for place, texts in found.items()}


def is_crash(said: Said, place: str) -> bool:
    """Whether a real server's CEL broke down over the place."""
    return any("internal error" in one for one in said.get(place, ()))


def depends_on_order(rule: str) -> bool:
    """Whether it walks a map, or compares what came out of an optional; a real server does so in any order."""
    return _WALKS_A_MAP.search(rule) is not None
