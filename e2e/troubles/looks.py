"""What people see of a Job in trouble: ``kubectl``, ``mirror explain``, and the page; as they print it.

Of ``kubectl describe`` and ``mirror explain``, only what concerns the trouble is kept. Not here: what a document says
(``document``).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

import aiohttp

from e2e.controlplane.client import Json
from e2e.people import Person
from e2e.troubles.stage import JOB, Play
from mirror.kube.resources import JOBS
from mirror.model import names

_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_WHY = re.compile(r'<td class="why".*?>(.*?)</td>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_FIELDS = ("State:", "Worker:", "Reason:", "Waiting because:", "Message:")
_CONDITIONS = (names.PLACED, names.PROGRESSING, names.RETRYING, "Suspended", "Failed")


async def look_at(play: Play) -> str:
    """What all of them show, as one block of text."""
    source = await play.scene.source(JOB)
    assert source is not None
    kubectl, kind = play.stage.management.kubectl, play.scene.resource.kind.lower()
    named = JOB if play.scene.resource == JOBS else f"{kind}/{JOB}"
    described = await kubectl("describe", kind, JOB, "--namespace", play.namespace)
    person = Person(str(play.stage.user), play.namespace, play.stage.manager.namespace)
    explained = await person.mirror("explain", named)
    lines = [
        f"$ kubectl get {kind} {JOB}",
        *(await kubectl("get", kind, JOB, "--namespace", play.namespace)).splitlines(),
        f"$ kubectl describe {kind} {JOB}",
        *_of_describe(described),
        *of_conditions(kind, source, _CONDITIONS),
        f"$ mirror explain {named}",
        *of_explain(explained),
        "page, WHY",
        f"  {await on_page(play) or '-'}",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


async def said_of(play: Play) -> str:
    """What ``mirror get`` and ``mirror explain`` print, one after the other."""
    person = Person(str(play.stage.user), play.namespace, play.stage.manager.namespace)
    return "".join([await person.mirror("get", JOB), await person.mirror("explain", JOB)])


async def on_page(play: Play) -> str:
    """What stands in the column WHY.

    Raises:
        AssertionError: the page does not show the Job.
    """
    url = f"{play.stage.page}?namespace={play.namespace}&text={play.namespace}/{JOB}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        text = await answer.text()
    for row in _ROW.findall(text):
        if JOB in row and play.namespace in row and (found := _WHY.search(row)):
            return " ".join(html.unescape(_TAG.sub(" ", found[1])).split())
    source = await play.scene.source(JOB)
    if source is not None and source["spec"].get("managedBy") != names.DEFAULT_MANAGED_BY:
        return ""  # the page has Jobs of the manager's own value only
    raise AssertionError(f"the page does not show {play.namespace}/{JOB}")


def _of_describe(text: str) -> Iterator[str]:
    """Pods, and warnings."""
    lines = text.splitlines()
    yield from (line for line in lines if line.startswith("Pods Statuses:"))
    events = lines[lines.index("Events:") :] if "Events:" in lines else []
    warnings = [line for line in events[3:] if line.lstrip().startswith("Warning")]
    if warnings:
        yield from events[:2]
        yield from warnings


def of_conditions(kind: str, source: Json, shown: Sequence[str]) -> Iterator[str]:
    """Those of these types, as in ``-o yaml``, in one line each; none that says that all is well."""
    told = [
        one
        for one in source["status"].get("conditions") or ()
        if one["type"] in shown and (one["type"], one["status"]) not in ((names.PLACED, "True"), ("Suspended", "False"))
    ]
    if not told:
        return
    yield f"$ kubectl get {kind} {source['metadata']['name']} -o yaml"
    for one in sorted(told, key=lambda one: shown.index(one["type"])):
        message = f": {one['message']}" if one["message"] else ""
        yield f"  {one['type']}={one['status']}, {one['reason']}{message}"


def of_explain(text: str) -> Iterator[str]:
    """The fields that say what is wrong; the timeline is left out, and which worker cannot take it."""
    yield from (line for line in text.splitlines() if line.startswith(_FIELDS))
