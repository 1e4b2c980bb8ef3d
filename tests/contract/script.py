"""Cases that are written down as requests and answers (``scripts/*.yaml``); the answers were given by a real server.

A step asks one thing. Its ``says`` is the whole answer in normal form (``normal``), or what its ``pick`` names of it;
``fine: true`` instead means that nothing matters but that it was not refused; ``until`` asks again until what it
names has these values, since a real server learns of new kinds and rights a moment later. So it does of an object
that has just been changed: an update judges what the watch cache has, and judges again if that was old, but warnings
of the first time stay. A GET with the ``resourceVersion`` of the change waits for that. ``unordered`` names lists of
the answer, such as ``warnings``, that a real server collects by iterating over a Go map, so that their order is
random. ``$(0.metadata.uid)`` anywhere in a request is that value of the answer to step 0. ``record`` fills in answers
that are not there yet.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tests.contract.answer import Answer, Wrong
from tests.contract.api import JSON, Api
from tests.contract.case import Group
from tests.contract.like import Exactly, differences, short
from tests.contract.normal import Normal

Json: TypeAlias = dict[str, Any]

FOLDER = Path(__file__).parent / "scripts"
_LOOK_AGAIN_SECONDS = 0.05
_HEADERS = ("content-type", "retry-after", "location", "allow")
REFERENCE = re.compile(r"\$\((\d+)\.([^)]*)\)")
_STEP_FIELDS = frozenset(
    ("ask", "body", "text", "content", "accept", "headers", "user", "pick", "unordered", "fine", "until", "says")
)


@dataclass(frozen=True, slots=True)
class Script:
    """A case in writing."""

    name: str
    steps: Sequence[Json]
    keeps_managers: bool = False

    @classmethod
    def read(cls, case: Json) -> Script:
        """From a file; ``before`` are steps of which only success matters."""
        unknown = case.keys() - {"case", "before", "steps", "managers", *_STEP_FIELDS}
        assert not unknown, f"{case['case']}: {unknown}"
        before = [
            {"ask": ask, "body": body, "fine": True} for one in case.get("before", ()) for ask, body in one.items()
        ]
        steps = case.get("steps") or [{name: value for name, value in case.items() if name in _STEP_FIELDS}]
        assert all(one.keys() <= _STEP_FIELDS for one in steps), case["case"]
        for one in steps:
            lists = {name for name, value in (one.get("says") or {}).items() if isinstance(value, list)}
            assert "says" not in one or lists.issuperset(one.get("unordered", ())), case["case"]
        return cls(case["case"], [*before, *steps], bool(case.get("managers")))

    async def play(self, api: Api) -> None:
        """Ask it all.

        Raises:
            Wrong: an answer is not the one that is written down.
        """
        for step, said in zip(self.steps, await self.answers(api), strict=True):
            if "says" in step:
                expected = in_one_order(step["says"], step.get("unordered", ()))
                wrong = list(differences(strict(expected), said))
                if wrong:
                    raise Wrong("\n    ".join([f"{step['ask']}:", *wrong, f"said: {short(said)}"]))

    async def answers(self, api: Api) -> list[Json]:
        """What the server says to each step, in the form of ``says``."""
        normal = Normal(self.keeps_managers)
        raw: list[Any] = []
        answers = []
        for step in self.steps:
            said = await asked(api, step, raw)
            while any(_at(normal_form(said, Normal()), path) != value for path, value in step.get("until", {}).items()):
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
                said = await asked(api, step, raw)
            raw.append(_decoded(said))
            if step.get("fine") and said.status >= 300:
                raise Wrong(f"{step['ask']}: {said.status} {short(said.text)}")
            form = picked(normal_form(said, normal), step.get("pick"))
            answers.append(in_one_order(form, step.get("unordered", ())))
        return answers


async def asked(api: Api, step: Mapping[str, Any], before: Sequence[Any]) -> Answer:
    """Ask what the step says; ``before`` are the answers so far, to which it may refer."""

    def filled(text: str) -> str:
        return REFERENCE.sub(lambda found: str(_at(before[int(found[1])], found[2])), text)

    method, target = step["ask"].split(" ", 1)
    user = step.get("user")
    caller = api.impersonating(user) if user else api
    body = step.get("body")
    if "text" in step:
        body = filled(step["text"]).encode()
    elif body is not None:
        body = filled(json.dumps(body)).encode()
    return await caller.send(
        method,
        filled(target),
        body,
        content=step.get("content", JSON),
        accept=step.get("accept", ""),
        headers=step.get("headers"),
    )


def normal_form(answer: Answer, normal: Normal) -> Json:
    """Status, warnings, odd headers and body; the lines of a watch are ``events``."""
    form: Json = {"status": answer.status}
    headers = {name: answer.header(name) for name in _HEADERS if answer.header(name) not in ("", "application/json")}
    if headers:
        form["headers"] = headers
    if answer.warnings:
        form["warnings"] = answer.warnings
    decoded = _decoded(answer)
    if isinstance(decoded, list):
        form["events"] = normal.of(decoded)
    elif isinstance(decoded, dict) and decoded.get("kind") == "Status" and decoded.get("apiVersion") == "v1":
        form |= _status(normal.of(decoded), answer.status)
    else:
        form["body"] = normal.of(decoded)
    return form


def picked(said: Json, paths: Sequence[str] | None) -> Json:
    """Only what the paths name, such as ``body.spec.suspend``, and always the status."""
    if paths is None:
        return said
    return {"status": said["status"], **{path: _at(said, path) for path in paths}}


def in_one_order(said: Json, unordered: Sequence[str]) -> Json:
    """The same with these of its lists sorted: there is no other order that two answers would have in common."""
    lists = {name: said[name] for name in unordered if isinstance(said.get(name), list)}
    return {**said, **{name: sorted(items, key=json.dumps) for name, items in lists.items()}}


def _status(body: Json, code: int) -> Json:
    """A Status in fewer words: what every one has is not repeated, unless it is not so."""
    plain = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": code, "status": "Failure"}
    rest = {name: value for name, value in body.items() if name not in plain or plain[name] != value}
    said: Json = {name: rest.pop(name) for name in ("reason", "message") if name in rest}
    details = rest.pop("details", None) or {}
    causes = details.pop("causes", None)
    if causes:
        said["causes"] = [
            " | ".join((one.get("reason", ""), one.get("field", ""), one.get("message", ""))) for one in causes
        ]
    if details:
        said["details"] = details
    return {**said, **({"Status": rest} if rest else {})}


def _decoded(answer: Answer) -> Any:
    """JSON; a list of events for a watch; text otherwise."""
    text = answer.text
    try:
        whole = json.loads(text)
        return [whole] if isinstance(whole, dict) and whole.keys() == {"type", "object"} else whole
    except ValueError:
        pass
    try:
        events = [json.loads(line) for line in text.splitlines() if line]
    except ValueError:
        return text
    return events if events or ("watch" in answer.request and answer.status == 200) else text


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def strict(value: Any) -> Any:
    """The same, as a pattern in which objects have no other fields."""
    if isinstance(value, dict):
        return Exactly(**{name: strict(inner) for name, inner in value.items()})
    return [strict(inner) for inner in value] if isinstance(value, list) else value


def scripts_of(name: str) -> Group:
    """The group that a file holds."""
    group = Group(name.replace("_", " "))
    for case in yaml.load((FOLDER / f"{name}.yaml").read_text(), Loader):
        script = Script.read(case)
        group.add(script.name, script.play)
    return group


# The base class depends on how yaml was built, which mypy cannot know.
class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # one of the two is there
    """YAML whose times stay text."""


Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
