"""What is served, told to clients in each form that they know."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import msgspec
import pytest

from mirror.batch.feature_gates import DEFAULT_GATES
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.apimachinery.strategy import Strategy
from mirror.embedded.apiserver.build import builtin
from mirror.embedded.apiserver.discovery import groups
from mirror.embedded.apiserver.messages import Request, Response

AGGREGATED = f"{groups.AGGREGATED_TYPE},application/json"


class Own(Strategy):
    """A kind with a schema of its own."""

    schema: ClassVar[Any] = {
        "type": "object",
        "properties": {"spec": {"type": "object", "description": "What is wanted."}},
    }


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = Registry()
    for kind in builtin(DEFAULT_GATES):
        registry.add(kind)
    for version in ("v1alpha1", "v2", "v1", "v1beta1", "other"):
        registry.add(Kind("example.com", version, "Widget", "widgets", Own(), short_names=("wd",)))
    return registry


def asked(registry: Registry, path: str, **headers: str) -> Any:
    found = answer(registry, path, **headers)
    return None if found is None else msgspec.json.decode(found.body)


def answer(registry: Registry, path: str, **headers: str) -> Response | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return groups.answer(Request("GET", path, headers=named), registry)


def test_groups_come_with_their_versions_the_best_first(registry: Registry) -> None:
    """Stable before beta before alpha, higher before lower."""
    listed = {one["name"]: one for one in asked(registry, "/apis")["groups"]}
    assert [one["version"] for one in listed["example.com"]["versions"]] == ["v2", "v1", "v1beta1", "v1alpha1", "other"]
    assert listed["example.com"]["preferredVersion"] == {"groupVersion": "example.com/v2", "version": "v2"}
    assert asked(registry, "/apis/batch")["versions"] == [{"groupVersion": "batch/v1", "version": "v1"}]
    assert list(listed)[-1] == "example.com"


def test_resources_come_with_their_subresources(registry: Registry) -> None:
    """As upstream lists them, sorted."""
    found = asked(registry, "/apis/batch/v1")
    assert found["groupVersion"] == "batch/v1"
    assert [one["name"] for one in found["resources"]] == ["cronjobs", "cronjobs/status", "jobs", "jobs/status"]
    assert found["resources"][2] == {
        "name": "jobs",
        "singularName": "job",
        "namespaced": True,
        "kind": "Job",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "categories": ["all"],
        "storageVersionHash": "mudhfqk/qZY=",
    }
    names = [one["name"] for one in asked(registry, "/api/v1")["resources"]]
    assert {"pods/binding", "pods/eviction", "pods/log", "pods/status", "serviceaccounts/token"} <= set(names)
    assert names == sorted(names)


def test_everything_at_once_is_told_to_who_wants_it(registry: Registry) -> None:
    """The aggregated form, with a tag by which it is kept."""
    found = answer(registry, "/apis", accept=AGGREGATED)
    assert found is not None
    assert found.content_type == groups.AGGREGATED_TYPE
    body = msgspec.json.decode(found.body)
    assert (body["apiVersion"], body["kind"]) == ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")
    tag = dict(found.headers)["ETag"]
    again = answer(registry, "/apis", accept=AGGREGATED, if_none_match=tag)
    assert (again and again.status) == 304
    assert asked(registry, "/api", accept=AGGREGATED)["items"][0]["metadata"] == {}


@pytest.mark.parametrize("accept", ["", "application/json", f"application/json,{groups.AGGREGATED_TYPE}", "x;as, */*"])
def test_others_get_the_old_form(registry: Registry, accept: str) -> None:
    """The first wish that can be met counts."""
    assert asked(registry, "/api", accept=accept)["kind"] == "APIVersions"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/apis/none",
        "/apis/batch/v2",
        "/x",
        "/openapi/v2",
        "/openapi/v3/x",
        "/apis/a/b/c",
        "//",
        "//api",
        "/apis//batch",
    ],
)
def test_what_is_not_there_is_not_answered(registry: Registry, path: str) -> None:
    """Somebody else's, or nobody's; a path is not another with fewer slashes."""
    assert answer(registry, path) is None


@pytest.mark.parametrize("path", ["/api", "/version", "/api/v1", "/apis/batch/v1"])
def test_nothing_can_be_written_here(registry: Registry, path: str) -> None:
    """405."""
    with pytest.raises(StatusError) as caught:
        groups.answer(Request("POST", path), registry)
    assert caught.value.code == 405


def test_documents_have_what_kubectl_reads(registry: Registry) -> None:
    """Paths by kind with the parameters of writes, schemas with descriptions and merge keys."""
    index = asked(registry, "/openapi/v3")["paths"]
    said = answer(registry, "/openapi/v3")
    assert said is not None
    assert said.content_type == "text/plain; charset=utf-8"
    assert index["apis/batch/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/batch/v1?hash=")
    document = asked(registry, "/openapi/v3/apis/batch/v1")
    patch = document["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "batch", "version": "v1", "kind": "Job"}
    assert {one["name"] for one in patch["parameters"]} >= {"fieldValidation", "fieldManager", "dryRun", "force"}
    schemas = document["components"]["schemas"]
    assert schemas["io.k8s.api.batch.v1.Job"]["x-kubernetes-group-version-kind"] == [
        {"group": "batch", "version": "v1", "kind": "Job"}
    ]
    pod = schemas["io.k8s.api.core.v1.PodSpec"]
    assert pod["required"] == ["containers"]
    assert "List of containers" in pod["properties"]["containers"]["description"]
    assert pod["properties"]["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert pod["properties"]["volumes"]["x-kubernetes-list-map-keys"] == ["name"]


def test_names_of_failure_rules_are_there_only_with_their_gate(registry: Registry) -> None:
    """Who reads the schema learns whether the field is kept (KEP-4443)."""
    rule = "io.k8s.api.batch.v1.PodFailurePolicyRule"
    request = Request("GET", "/openapi/v3/apis/batch/v1")
    for is_on in (True, False):
        found = groups.answer(request, registry, msgspec.structs.replace(DEFAULT_GATES, pod_failure_policy_name=is_on))
        assert found is not None
        properties = msgspec.json.decode(found.body)["components"]["schemas"][rule]["properties"]
        assert ("name" in properties) == is_on


def test_every_reference_leads_somewhere(registry: Registry) -> None:
    """In every document."""
    for path in asked(registry, "/openapi/v3")["paths"]:
        document = asked(registry, f"/openapi/v3/{path}")
        known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert _references(document) <= known


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values())) if value else own
    return set().union(*map(_references, value)) if isinstance(value, list) and value else set()


def test_custom_resources_are_described_by_their_schema(registry: Registry) -> None:
    """With what all objects have; another schema is another document."""
    schema = asked(registry, "/openapi/v3/apis/example.com/v1")["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["description"] == "What is wanted."
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    before = asked(registry, "/openapi/v3")["paths"]["apis/example.com/v1"]

    class Changed(Own):
        """Later."""

        schema: ClassVar[Any] = {"type": "object"}

    other = Registry()
    other.add(Kind("example.com", "v1", "Widget", "widgets", Changed(), short_names=("wd",)))
    assert asked(other, "/openapi/v3")["paths"]["apis/example.com/v1"] != before


@pytest.mark.parametrize("accept", ["application/json", AGGREGATED])
def test_thousands_of_versions_are_not_compared_pair_by_pair(accept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition may have twenty thousand: everybody waited half a minute for whoever asked what there is."""
    registry = Registry()
    for place in range(1_000):
        registry.add(Kind("example.com", Version(f"v{place + 1}"), "Widget", "widgets", Own()))
    monkeypatch.setattr(groups, "_ENCODER", Encoder())
    monkeypatch.setattr(Version, "compared", 0)
    assert answer(registry, "/apis", accept=accept) is not None
    assert Version.compared < 30_000


class Encoder:
    """One that does not want its texts plain."""

    def encode(self, body: object) -> bytes:
        return json.dumps(body).encode()


class Version(str):
    """Counts with how many others it is compared."""

    compared: ClassVar[int] = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Version.compared += 1
        return super().__eq__(other)
