"""What is wrong with a mirror's pods now, as ``explain`` finds out on demand: by the user's own rights, through access.

The manager itself looks at no pods for it, so it needs no permission to watch them (``workers.watchPods``); what it
would say of them is the same, since the judgement is (``workers.pod_trouble``). Pure, but for ``troubles``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from mirror.batch import views
from mirror.cli.user import printing
from mirror.cli.user.failures import Failure, NotYet
from mirror.cli.user.naming import Named
from mirror.cli.user.server import AccessEndpoint
from mirror.cli.user.timeline import time_of_event
from mirror.workers.pod_trouble import (
    CREATE_EVENTS,
    Trouble,
    disruption_of,
    is_unready,
    may_hold,
    refused_create,
    trouble_of,
    warned_of,
)

Json = Mapping[str, object]

NEWEST_SECONDS = 600.0
"""A warning that has not been repeated for so long is over, as for the manager."""
MOST_SHOWN = 20


class PodTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """One pod that does not run, or (without a name) pods that cannot be created; also how it looks as JSON."""

    pod: str
    reason: str
    message: str
    has_failed: bool = msgspec.field(name="hasFailed", default=False)
    """It is over, or about to be; the Job may have another one by now."""


async def troubles(asked: AccessEndpoint, namespace: str, wanted: Named) -> tuple[tuple[PodTrouble, ...], list[str]]:
    """What is wrong with the pods of a mirror, and what could not be read, in words."""
    notes: list[str] = []
    pods: list[Json] = []
    events: list[Json] = []
    try:
        pods = await asked.pods(namespace, wanted)
    except NotYet:  # there is no mirror, which the rest of the story tells
        return (), []
    except Failure as failure:
        notes.append(f"pods are not included: {failure.message}")
    if not notes:
        try:
            events = await asked.events(namespace, wanted)
        except Failure as failure:
            notes.append(f"the worker's events are not included: {failure.message}")
    return judge(pods, events, datetime.now(UTC)), notes


def judge(pods: Iterable[Json], events: Iterable[Json], now: datetime) -> tuple[PodTrouble, ...]:
    """Pods in trouble, those that wait before those that have failed, by name; what a status tells counts first.

    Args:
        pods: all of a mirror.
        events: of the worker, about the mirror and its pods.
        now: by which warnings are over.
    """
    found: dict[str, Trouble] = {}
    unready: dict[str, bytes] = {}
    newest: dict[str, str] = {}
    for pod in pods:
        metadata, status = views.mapping(pod.get("metadata")), views.mapping(pod.get("status"))
        name = views.text(metadata.get("name"))
        maker = _maker_of(metadata)
        newest[maker] = max(newest.get(maker, ""), views.text(metadata.get("creationTimestamp")))
        encoded, is_deleted = msgspec.json.encode(status), bool(metadata.get("deletionTimestamp"))
        trouble = disruption_of(encoded) if is_deleted else trouble_of(encoded, msgspec.json.encode(pod.get("spec")))
        if trouble is not None:
            found[name] = trouble
        elif is_unready(encoded) and not is_deleted:
            unready[name] = encoded
    for event in events:
        if event.get("type") == "Warning" and _is_new(event, now):
            _take(found, event, unready, newest)
    listed = sorted(found.items(), key=lambda item: (item[1].has_failed, item[0]))
    return tuple(
        PodTrouble(pod=pod, reason=str(one.reason), message=one.text, has_failed=one.has_failed) for pod, one in listed
    )


def _maker_of(metadata: Json) -> str:
    """The name of what controls a pod; empty: nothing that is known."""
    owners = map(views.mapping, views.items(metadata.get("ownerReferences")))
    return next((views.text(one.get("name")) for one in owners if one.get("controller") is True), "")


def _take(found: dict[str, Trouble], event: Json, unready: Mapping[str, bytes], newest: Mapping[str, str]) -> None:
    """Add what an event tells, unless a status tells it better, or it is over: a pod of it was created since.

    Args:
        found: by the pod's name; changed.
        event: of the worker.
        unready: the statuses of pods that are not ready, by name.
        newest: when the newest pod was created, by the name of what controls it.
    """
    about = views.mapping(event.get("involvedObject"))
    name, reason, message = views.text(about.get("name")), views.text(event.get("reason")), event.get("message")
    if reason in CREATE_EVENTS and about.get("kind") != "Pod":
        if time_of_event(event) >= max(newest.get(name, ""), newest.get("", "")):
            found[""] = refused_create(views.text(message))
    elif name in unready:
        trouble = warned_of(reason, views.text(message))
        if trouble is not None and may_hold(trouble, unready[name]):
            found[name] = trouble


def _is_new(event: Json, now: datetime) -> bool:
    seconds = printing.seconds_between(time_of_event(event), "", now)
    return seconds is None or seconds <= NEWEST_SECONDS
