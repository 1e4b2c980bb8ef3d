"""Many Jobs that run: a few that a manager has mirrored, and copies of them on both sides, put into storage.

A copy differs in its name and its two uids, wherever they stand in either object, and in the note on the mirror, which
says what was carried; so a manager that begins finds what it would have made itself. No manager may run meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import uuid
from collections.abc import Mapping
from types import MappingProxyType

from bench.forms import FORMS
from e2e.scale.clusters import JOBS, JOBS_STORED, Clusters
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Record
from mirror.kinds.base import MirrorTransform
from mirror.kinds.registry import JOB
from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.planes.plane import ControlPlane as Embedded

PODS = 3
_VERSION = re.compile(rb'"resourceVersion":"\d+"')
_SOURCE_BYTES = 3500
_LOOK_SECONDS = 0.05
_WORDS = [f"{a}{b}{c}" for a in "bdfklmnprst" for b in ("a", "ei", "o", "u") for c in ("n", "rt", "ssel", "mp")]


async def originals(clusters: Clusters, managed_by: str, *, seed: int, seconds: float) -> dict[str, str]:
    """Create a Job for each worker, and have it run there by what manages Jobs of this value; their names by worker.

    Raises:
        TimeoutError: not all of them run in that time.
    """
    made, form, chance = {}, FORMS["Job"], random.Random(seed)
    for number, worker in enumerate(clusters.workers):
        name = copy_name(0, number)
        annotations = {names.WORKER_ORDER: worker, "example.com/words": _text(chance)}
        body = form.body(
            {"name": name, "annotations": annotations}, pods=PODS, managed_by=managed_by, is_suspended=False
        )
        container = body["spec"]["template"]["spec"]["containers"][0]
        container["env"] = [{"name": "ARGUMENTS", "value": _text(chance)}]
        await clusters.management.api.create(JOBS, body)
        made[worker] = name
    async with asyncio.timeout(seconds):
        for worker, name in made.items():
            there = clusters.workers[worker]
            while there.storage.get(JOBS_STORED, "default", name) is None:  # noqa: ASYNC110 - by another process
                await asyncio.sleep(_LOOK_SECONDS)
            await there.api.merge(f"{JOBS}/{name}/status", {"status": form.status(pods=PODS, ready=0)})
            await there.api.merge(f"{JOBS}/{name}/status", {"status": form.status(pods=PODS, ready=PODS)})
        for name in made.values():
            while not _runs(clusters.management.storage.get(JOBS_STORED, "default", name)):  # noqa: ASYNC110 - as above
                await asyncio.sleep(_LOOK_SECONDS)
    return made


def copy_name(copy: int, worker: int) -> str:
    """Of equal length; in order of names, each copy is beside those of other originals."""
    return f"crowd-{copy:05d}-{worker:04d}"


def multiply(clusters: Clusters, made: Mapping[str, str], count: int) -> None:
    """Put copies into storage until there are so many Jobs with those that are there."""
    here, each = clusters.management.storage, list(made.items())
    for total in range(len(each), count):
        copy, number = divmod(total, len(each))
        worker, name = each[number]
        there = clusters.workers[worker].storage
        source, mirror = here.get(JOBS_STORED, "default", name), there.get(JOBS_STORED, "default", name)
        assert source is not None
        assert mirror is not None
        changes = {name: copy_name(copy, number), source.uid: str(uuid.uuid4()), mirror.uid: str(uuid.uuid4())}
        note = _note(source.raw, mirror)
        assert note in mirror.raw
        _put(here, source, changes)
        _put(there, mirror, changes, {note: _note(_changed(source.raw, changes), mirror)})


def versions(clusters: Clusters) -> dict[str, int]:
    """Of which version each cluster is, by name."""
    return {name: plane.storage.version for name, plane in _all(clusters).items()}


def unchanged(clusters: Clusters, since: Mapping[str, int]) -> int:
    """How many of the crowd's objects, on both sides, are as they were at these versions."""
    found = ((name, plane.storage.records(JOBS_STORED, "default")) for name, plane in _all(clusters).items())
    crowds = ((name, record) for name, records in found for record in records if record.name.startswith("crowd-"))
    return sum(record.version <= since[name] for name, record in crowds)


def _all(clusters: Clusters) -> dict[str, Embedded]:
    return {"": clusters.management, **clusters.workers}


def _note(source: bytes, mirror: Record) -> bytes:
    """What a manager notes on the mirror of this source, as it stands in JSON."""
    origin, uid = mirror.labels[names.ORIGIN], mirror.labels.get(names.MANAGEMENT_UID, "")
    transform = MirrorTransform(origin, management_uid=uid)
    body = JOB.mirror_body(decode_object(source), namespace="default", transform=transform)
    return json.dumps(body["metadata"]["annotations"][names.CARRIED]).encode()


def _changed(raw: bytes, changes: Mapping[str, str]) -> bytes:
    for before, after in changes.items():
        raw = raw.replace(before.encode(), after.encode())
    return raw


def _put(
    storage: Storage, original: Record, changes: Mapping[str, str], notes: Mapping[bytes, bytes] = MappingProxyType({})
) -> None:
    raw, labels = _changed(original.raw, changes), dict(original.labels)
    for before, after in notes.items():
        raw = raw.replace(before, after)
    for old, new in changes.items():
        labels = {key: value.replace(old, new) for key, value in labels.items()}

    def build(version: int) -> bytes:
        return _VERSION.sub(b'"resourceVersion":"%d"' % version, raw, count=1)

    name, uid = changes[original.name], changes[original.uid]
    storage.write(JOBS_STORED, "default", name, build, replacing=None, labels=labels, uid=uid)


def _runs(record: Record | None) -> bool:
    return record is not None and b'"ready":%d' % PODS in record.raw


def _text(chance: random.Random) -> str:
    """About a quarter of a source's bytes; most of the rest is what a server and a manager add."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) < _SOURCE_BYTES // 4:
        words.append(chance.choice(_WORDS))
    return " ".join(words)
