"""Large requests by the server's own OpenAPI: one list, map or string of a kind at a time is made huge.

What is not huge is a small object that the kind accepts, as far as there is one here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.embedded.apiserver.asking import Asking

Json: TypeAlias = dict[str, Any]
Steps: TypeAlias = tuple[str | int, ...]

JSON_TYPE = "application/json"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
_DEEPEST = 9
_MOST_ITEMS = 60_000
"""Of a body: more values than the server takes would only be refused."""
_POD: Json = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
_JOB: Json = {"template": {"spec": _POD}}
_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_SCHEMA = {"openAPIV3Schema": {"type": "object"}}
_DEFINITION: Json = {
    "group": "e.com",
    "scope": "Namespaced",
    "names": {"plural": "bases", "kind": "Base"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": _SCHEMA}],
}
_SMALL: Mapping[str, Json] = {
    "Pod": {"spec": _POD},
    "Job": {"spec": _JOB},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}}},
    "PriorityClass": {"value": 1},
    "ClusterRoleBinding": {"roleRef": _REF},
    "RoleBinding": {"roleRef": _REF},
    "CustomResourceDefinition": {"metadata": {"name": "bases.e.com"}, "spec": _DEFINITION},
    "Event": {"involvedObject": {"namespace": "default"}},
    "SelfSubjectAccessReview": {"spec": {"resourceAttributes": {"verb": "get"}}},
}


@dataclass(frozen=True)
class Place:
    """A field that can be huge, of one kind."""

    path: str
    """Of the collection."""
    api_version: str
    kind: str
    steps: Steps
    schema: Json
    schemas: Json

    def __str__(self) -> str:
        return f"{self.kind} {'.'.join(map(str, self.steps))}"

    def small(self) -> Json:
        """An object without it."""
        found = {"apiVersion": self.api_version, "kind": self.kind, **deepcopy(dict(_SMALL.get(self.kind, {})))}
        found["metadata"] = {"name": "base", **found.get("metadata", {})}
        return found

    def value(self, size: int, *, is_empty: bool = False) -> Any:
        """Something of about ``size`` bytes for this field; ``is_empty``: of items in which nothing is set."""
        return _huge(self.schema, self.schemas, size, is_empty=is_empty)

    def put(self, value: Any) -> Json:
        """The small object with this value."""
        body = self.small()
        inner: Any = body
        for step, after in zip(self.steps, self.steps[1:], strict=False):
            if isinstance(inner, list):
                if not inner:
                    inner.append({"name": "x"})
                inner = inner[0]
                continue
            if not inner.get(step):
                inner[step] = [] if after == 0 else {}
            inner = inner[step]
        if isinstance(inner, list):
            inner[:] = [value]
        else:
            inner[self.steps[-1]] = value
        return body

    def pointer(self) -> str:
        """For JSON patches."""
        return "".join(f"/{step}" for step in self.steps)


async def places(asking: Asking) -> list[Place]:
    """Every field that can be huge, of all kinds that can be created."""
    found = []
    index = await asking.ok("GET", "/openapi/v3")
    for name in index["paths"]:
        document = await asking.ok("GET", f"/openapi/v3/{name}")
        schemas = document.get("components", {}).get("schemas", {})
        for path, item in document.get("paths", {}).items():
            named = item.get("post", {}).get("x-kubernetes-group-version-kind")
            if not named or "{name}" in path:
                continue
            api_version = f"{named['group']}/{named['version']}".removeprefix("/")
            schema = item["post"]["requestBody"]["content"]["*/*"]["schema"]
            where = path.replace("{namespace}", "default")
            found += [
                Place(where, api_version, named["kind"], steps, one, schemas)
                for steps, one in _fields(schema, schemas, (), set())
            ]
    return found


def _fields(schema: Json, schemas: Json, steps: Steps, seen: set[str]) -> Iterator[tuple[Steps, Json]]:
    """Lists, maps and strings below; each struct of a kind is looked into where it is met first."""
    schema, name = _resolved(schema, schemas)
    if name in seen or len(steps) > _DEEPEST:
        return
    if name:
        seen.add(name)
    kind = schema.get("type")
    if kind == "array":
        yield steps, schema
        yield from _fields(schema["items"], schemas, (*steps, 0), seen)
    elif "properties" in schema:
        for field, one in schema["properties"].items():
            if steps or field not in ("apiVersion", "kind"):
                yield from _fields(one, schemas, (*steps, field), seen)
    elif steps and kind in ("object", "string", None):
        yield steps, schema


def _resolved(schema: Json, schemas: Json) -> tuple[Json, str]:
    refs = [schema, *schema.get("allOf", ())]
    ref = next((one["$ref"] for one in refs if "$ref" in one), "")
    if not ref:
        return schema, ""
    name = ref.rpartition("/")[2]
    return schemas[name], name


def _huge(schema: Json, schemas: Json, size: int, *, is_empty: bool) -> Any:
    schema, _ = _resolved(schema, schemas)
    match schema.get("type"):
        case "array":
            one = {} if is_empty else _item(schema["items"], schemas, 0)
            many = min(_MOST_ITEMS, size // (len(json.dumps(one)) + 5))
            return [{} if is_empty else _item(schema["items"], schemas, number) for number in range(many)]
        case "string":
            return "a" * size
        case _:
            return {f"k{number}": "v" for number in range(min(_MOST_ITEMS, size // 16))}


def _item(schema: Json, schemas: Json, number: int) -> Any:
    """One of many, unlike the others where its fields can say that."""
    schema, _ = _resolved(schema, schemas)
    kind = schema.get("type")
    if kind == "string":
        return f"x{number}"
    if kind in ("integer", "number"):
        return number
    if kind == "boolean":
        return True
    if kind == "array":
        return [_item(schema["items"], schemas, number)]
    fields = schema.get("properties", {})
    wanted = [*schema.get("required", ()), *(one for one in ("name", "key", "type") if one in fields)]
    return {one: _item(fields[one], schemas, number) for one in dict.fromkeys(wanted) if one in fields}


@dataclass(frozen=True)
class Large:
    """One request."""

    what: str
    method: str
    target: str
    body: bytes
    content_type: str = JSON_TYPE
    accept: str = JSON_TYPE


def requests(place: Place, size: int) -> Iterator[Large]:
    """What can be done with a huge value: written at once, in each way of changing, and changed by little."""
    one, named = f"{place.path}/{place.small()['metadata']['name']}", place.small()
    value, body = place.value(size), place.put(place.value(size))
    raw, change = json.dumps(body).encode(), {"labels": {"a": "b"}}
    small = json.dumps(named).encode()
    empty, labelled = place.put(place.value(size, is_empty=True)), {**body, "metadata": body["metadata"] | change}
    yield Large("create, empty", "POST", f"{place.path}?dryRun=All", _dumped(empty))
    yield Large("create, to begin with", "POST", place.path, small)
    yield Large("update", "PUT", f"{one}?dryRun=All", raw)
    yield Large("merge patch", "PATCH", f"{one}?dryRun=All", raw, MERGE)
    yield Large("strategic merge patch", "PATCH", f"{one}?dryRun=All", raw, STRATEGIC)
    operation = {"op": "add", "path": place.pointer(), "value": value}
    yield Large("JSON patch", "PATCH", f"{one}?dryRun=All", _dumped([operation]), JSON_PATCH)
    yield Large("apply", "PATCH", f"{one}?dryRun=All&fieldManager=m&force=true", raw, APPLY)
    yield Large("delete", "DELETE", one, b"")
    yield Large("create", "POST", place.path, raw)
    yield Large("update of what is large", "PUT", one, _dumped(labelled))
    yield Large("small merge patch", "PATCH", one, _dumped({"metadata": {"labels": {"a": "c"}}}), MERGE)
    yield Large("small strategic patch", "PATCH", one, _dumped({"metadata": {"labels": {"a": "d"}}}), STRATEGIC)
    yield Large("apply of what is large", "PATCH", f"{one}?fieldManager=m&force=true", raw, APPLY)
    yield Large("get as YAML", "GET", one, b"", accept="application/yaml")
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    yield Large("list as table", "GET", place.path, b"", accept=table)
    yield Large("list as YAML", "GET", place.path, b"", accept="application/yaml")
    yield Large("delete of what is large", "DELETE", one, b"")


def selectors(path: str, size: int) -> Iterator[Large]:
    """Queries that are as large as heads may be."""
    many = size // 12
    for what, query in {
        "labels": "labelSelector=" + ",".join(f"k{number}!=x" for number in range(many)),
        "one label often": "labelSelector=" + ",".join(["a%21=x"] * many),
        "values of a label": "labelSelector=a+in+(" + ",".join(f"v{number}" for number in range(many)) + ")",
        "fields": "fieldSelector=" + ",".join(["metadata.name!=x"] * (many // 2)),
        "escapes": "fieldSelector=metadata.name=" + "\\\\" * (many * 5),
        "parameters": "&".join(f"p{number}=1" for number in range(many)),
    }.items():
        yield Large(f"query of many {what}", "GET", f"{path}?{query}", b"")
    yield Large("options of a delete", "DELETE", f"{path}/none", _dumped({"preconditions": {"x": ["a"] * many}}))


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()
