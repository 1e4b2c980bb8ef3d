"""An API server in memory: objects, versions, watches; as much of it as a manager notices.

Statuses of Jobs are refused by our own knowledge of the API's rules, which other tests compare with a real server. Not
here: the wire and its faults (``transport``).
"""

from __future__ import annotations

import asyncio
import copy
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from doubles.patching import BadPatch, apply_json_patch, apply_merge_patch
from doubles.pods import apply_strategic_patch, begin_deletion, may_go, set_pod_defaults
from doubles.refusals import Refused, expired, not_found
from mirror.adapters.job_status_stored import served
from mirror.batch.status_rules import check_status_update
from mirror.kube.requests import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Request

Body = dict[str, Any]
Name = tuple[str, str, str]
"""Plural, namespace, name."""

PATCHES = {
    JSON_PATCH: apply_json_patch,
    MERGE_PATCH: apply_merge_patch,
    STRATEGIC_MERGE_PATCH: apply_strategic_patch,
}
GENERATED = ("batch.kubernetes.io/controller-uid", "controller-uid", "batch.kubernetes.io/job-name", "job-name")


@dataclass(frozen=True)
class Target:
    """What a URL path names."""

    plural: str
    namespace: str | None
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Name:
        return self.plural, self.namespace or "", self.name

    @staticmethod
    def of(path: str) -> Target:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        rest += [""] * (3 - len(rest))
        return Target(rest[0], namespace, rest[1], rest[2])


@dataclass(frozen=True)
class Happened:
    """One change, with the object before it."""

    version: int
    type: str
    key: Name
    body: Body
    before: Body | None


@dataclass(eq=False)
class Watching:
    """One open watch: what it asks for, and the lines it has not sent yet."""

    plural: str
    namespace: str | None
    selector: dict[str, str]
    lines: asyncio.Queue[bytes | BaseException] = field(default_factory=asyncio.Queue)

    def wants(self, body: Body | None) -> bool:
        if body is None or (self.namespace is not None and body["metadata"].get("namespace") != self.namespace):
            return False
        labels = body["metadata"].get("labels") or {}
        return all(labels.get(key) == value for key, value in self.selector.items())

    def take(self, happened: Happened) -> None:
        if happened.key[0] != self.plural:
            return
        wanted, was_wanted = self.wants(happened.body), self.wants(happened.before)
        if happened.type == "DELETED" or (was_wanted and not wanted):
            if was_wanted:
                version = happened.body["metadata"]["resourceVersion"]
                gone = {**(happened.before or {})}
                gone["metadata"] = {**gone["metadata"], "resourceVersion": version}
                self.send("DELETED", gone)
        elif wanted:
            self.send("MODIFIED" if was_wanted else "ADDED", happened.body)

    def send(self, type_name: str, body: Body) -> None:
        self.lines.put_nowait(json.dumps({"type": type_name, "object": body}).encode() + b"\n")

    def bookmark(self, version: int, *, ends_initial_events: bool = False) -> None:
        metadata: Body = {"resourceVersion": str(version)}
        if ends_initial_events:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        self.send("BOOKMARK", {"kind": "Any", "metadata": metadata})


class ApiServer:
    """One cluster. ``objects`` may be read freely; change them through the methods, so that watches see it."""

    def __init__(self, name: str, now: Callable[[], str], *, minor: int = 36, streams_lists: bool = True) -> None:
        self.name = name
        self.minor = minor
        self.streams_lists = streams_lists
        self.objects: dict[Name, Body] = {}
        self.watches: list[Watching] = []
        self._now = now
        self._version = 100
        self._oldest = 0
        self._history: list[Happened] = []
        self._pages: dict[str, tuple[list[Body], int]] = {}
        for namespace in ("kube-system", "default", "jobmirror-system"):
            self.put("namespaces", {"metadata": {"name": namespace}})

    @property
    def uid(self) -> str:
        uid: str = self.objects["namespaces", "", "kube-system"]["metadata"]["uid"]
        return uid

    # -- for tests ---------------------------------------------------------------------------------------------------

    def get(self, plural: str, name: str, namespace: str = "default") -> Body:
        return copy.deepcopy(self.objects[plural, namespace, name])

    def find(self, plural: str, name: str, namespace: str = "default") -> Body | None:
        return copy.deepcopy(self.objects.get((plural, namespace, name)))

    def all(self, plural: str) -> list[Body]:
        return [copy.deepcopy(body) for key, body in self.objects.items() if key[0] == plural]

    def put(self, plural: str, body: Body) -> Body:
        """Create as somebody else."""
        return self._create(Target(plural, body["metadata"].get("namespace")), copy.deepcopy(body))

    def edit(self, plural: str, name: str, change: Callable[[Body], None], namespace: str = "default") -> Body:
        """Change an object as somebody else, without any check."""
        body = self.get(plural, name, namespace)
        change(body)
        return self._store((plural, namespace, name), body)

    def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        """Delete as somebody else."""
        self._delete((plural, namespace, name))

    def compact(self) -> None:
        """Forget the history: who watches from an earlier version must list again."""
        self._history.clear()
        self._oldest = self._version

    # -- requests ----------------------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Body:
        """Carry out anything but a watch.

        Raises:
            Refused: with the Status to answer.
        """
        if request.path == "/version":
            return {"major": "1", "minor": str(self.minor)}
        target, body = Target.of(request.path), json.loads(request.body or b"{}")
        match request.method:
            case "GET" if not target.name:
                return self._list(target, dict(request.query))
            case "GET":
                return copy.deepcopy(self._found(target))
            case "POST":
                return self._create(target, body)
            case "DELETE":
                uid = body.get("preconditions", {}).get("uid")
                if uid not in (None, self._found(target)["metadata"]["uid"]):
                    raise Refused(409, "Conflict", "the uid is another")
                return self._delete(target.key)
            case "PUT":
                return self._update(target, body)
            case _:
                return self._patch(target, body, request.content_type)

    def open_watch(self, request: Request) -> Watching:
        """Begin a watch; raises Refused."""
        target, query = Target.of(request.path), dict(request.query)
        watching = Watching(target.plural, target.namespace, _selector(query))
        if query.get("sendInitialEvents") == "true":
            if not self.streams_lists:
                raise Refused(422, "Invalid", "sendInitialEvents is forbidden")
            for body in self._matching(watching):
                watching.send("ADDED", body)
            watching.bookmark(self._version, ends_initial_events=True)
        else:
            since = int(query.get("resourceVersion") or self._version)
            if since < self._oldest:
                raise expired()
            for happened in self._history:
                if happened.version > since:
                    watching.take(happened)
        self.watches.append(watching)
        return watching

    @property
    def version(self) -> int:
        return self._version

    def _matching(self, watching: Watching) -> list[Body]:
        return [
            body for key, body in sorted(self.objects.items()) if key[0] == watching.plural and watching.wants(body)
        ]

    def _list(self, target: Target, query: Mapping[str, str]) -> Body:
        token, limit = query.get("continue", ""), int(query.get("limit", "500"))
        if token:
            if token not in self._pages:
                raise expired()
            items, version = self._pages.pop(token)
        else:
            items = copy.deepcopy(self._matching(Watching(target.plural, target.namespace, _selector(query))))
            version = self._version
        following = ""
        if len(items) > limit:
            following = uuid.uuid4().hex
            self._pages[following] = items[limit:], version
        return {"metadata": {"resourceVersion": str(version), "continue": following}, "items": items[:limit]}

    def _found(self, target: Target) -> Body:
        body = self.objects.get(target.key)
        if body is None:
            raise not_found(target.plural, target.name)
        return body

    def _create(self, target: Target, body: Body) -> Body:
        metadata = body["metadata"]
        namespace = target.namespace or ""
        if "name" not in metadata:
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        key = target.plural, namespace, metadata["name"]
        if namespace and ("namespaces", "", namespace) not in self.objects:
            raise not_found("namespaces", namespace)
        if key in self.objects:
            raise Refused(409, "AlreadyExists", f'{target.plural} "{metadata["name"]}" already exists')
        if namespace:
            metadata["namespace"] = namespace
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": self._now(), "generation": 1}
        if target.plural == "jobs":
            body.pop("status", None)
            _set_defaults(body)
        if target.plural == "pods":
            set_pod_defaults(body)
        return self._store(key, body)

    def _update(self, target: Target, body: Body) -> Body:
        stored = self._found(target)
        wanted = body["metadata"].get("resourceVersion")
        if wanted and wanted != stored["metadata"]["resourceVersion"]:
            raise Refused(409, "Conflict", "the object has been modified")
        if body["metadata"].get("uid", stored["metadata"]["uid"]) != stored["metadata"]["uid"]:
            raise Refused(409, "Conflict", "the uid is another")
        kept = ("uid", "creationTimestamp", "generation", "name", "namespace")
        kept += ("deletionTimestamp", "deletionGracePeriodSeconds")
        body["metadata"] |= {name: stored["metadata"][name] for name in kept if name in stored["metadata"]}
        if target.subresource == "status":
            body["spec"] = stored["spec"]
            self._check_status(stored, body)
        elif "status" in stored:
            body["status"] = stored["status"]
        if target.plural == "jobs" and not target.subresource:
            _check_spec(stored, body)
        return self._store(target.key, body)

    def _check_status(self, stored: Body, body: Body) -> None:
        before = {"spec": stored["spec"], "status": stored.get("status") or {}}
        causes = check_status_update(before, body.get("status") or {})
        if causes:
            raise Refused(422, "Invalid", "; ".join(f"{cause.field}: {cause.message}" for cause in causes))
        body["status"] = served(body.get("status") or {})

    def _patch(self, target: Target, patch: Any, content_type: str | None) -> Body:
        stored = self._found(target)
        try:
            patched = PATCHES[content_type or ""](stored, patch)
        except BadPatch as error:
            raise Refused(422, "Invalid", str(error)) from error
        return self._update(target, patched)

    def _delete(self, key: Name) -> Body:
        body = copy.deepcopy(self.objects[key])
        if key[0] == "pods" and not begin_deletion(body, self._now()):
            return self._store(key, body)
        if body["metadata"].get("finalizers"):
            body["metadata"].setdefault("deletionTimestamp", self._now())
            return self._store(key, body)
        before = self.objects.pop(key)
        body["metadata"]["resourceVersion"] = str(self._next_version())
        self._tell(Happened(self._version, "DELETED", key, body, before))
        return body

    def _store(self, key: Name, body: Body) -> Body:
        before = self.objects.get(key)
        if before is not None and before.get("spec") != body.get("spec"):
            body["metadata"]["generation"] += 1
        if before is not None and _same(before, body):
            return copy.deepcopy(before)  # a write that changes nothing makes no version
        body["metadata"]["resourceVersion"] = str(self._next_version())
        self.objects[key] = body
        self._tell(Happened(self._version, "MODIFIED" if before else "ADDED", key, body, before))
        if body["metadata"].get("deletionTimestamp") and may_go(body):
            self._delete(key)
        return copy.deepcopy(body)

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    def _tell(self, happened: Happened) -> None:
        self._history.append(happened)
        for watching in self.watches:
            watching.take(happened)


def _same(before: Body, body: Body) -> bool:
    def plain(one: Body) -> Body:
        return {**one, "metadata": {k: v for k, v in one["metadata"].items() if k != "resourceVersion"}}

    return plain(before) == plain(body)


def _selector(query: Mapping[str, str]) -> dict[str, str]:
    text = query.get("labelSelector", "")
    return dict(part.split("=", 1) for part in text.split(",")) if text else {}


def _set_defaults(job: Body) -> None:
    """What the API server and its admission add to each Job."""
    spec, metadata = job["spec"], job["metadata"]
    spec["selector"] = spec.get("selector") or {"matchLabels": {GENERATED[0]: metadata["uid"]}}
    defaults = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    for name, value in defaults.items():
        spec.setdefault(name, value)
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    if not spec.get("manualSelector"):
        values = (metadata["uid"], metadata["uid"], metadata["name"], metadata["name"])
        labels |= dict(zip(GENERATED, values, strict=True))
    spec["template"]["spec"].setdefault("terminationGracePeriodSeconds", 30)
    job["metadata"].setdefault("labels", {}).update(labels)
    job["status"] = {}


def _check_spec(stored: Body, body: Body) -> None:
    """The template may change only while the Job is suspended and runs nothing (U4)."""
    if stored["spec"].get("managedBy") != body["spec"].get("managedBy"):
        raise Refused(422, "Invalid", "spec.managedBy: field is immutable")
    if stored["spec"]["template"] == body["spec"]["template"]:
        return
    status = stored.get("status") or {}
    is_shown = any(c["type"] == "Suspended" and c["status"] == "True" for c in status.get("conditions") or ())
    if not stored["spec"]["suspend"] or status.get("active") or (status.get("startTime") and not is_shown):
        raise Refused(422, "Invalid", "spec.template: field is immutable")
