"""What clients learn of the server before they ask for anything: versions, groups, resources, OpenAPI.

Only what is served by both counts: a real server has many more kinds.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from mirror.kube.aggregated import ACCEPT
from tests.contract.answer import Answer, Wrong
from tests.contract.api import Api
from tests.contract.case import Group
from tests.contract.like import TEXT, differences

Json: TypeAlias = dict[str, Any]
cases = Group("discovering")
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_REVIEW = ["create"]
_STATUS = ["get", "patch", "update"]

# name, kind, namespaced, verbs, short names, categories
_RESOURCES: dict[str, list[tuple[str, str, bool, list[str], list[str], list[str]]]] = {
    "v1": [
        ("bindings", "Binding", True, ["create"], [], []),
        ("configmaps", "ConfigMap", True, _VERBS, ["cm"], []),
        ("events", "Event", True, _VERBS, ["ev"], []),
        ("namespaces", "Namespace", False, [one for one in _VERBS if one != "deletecollection"], ["ns"], []),
        ("namespaces/finalize", "Namespace", False, ["update"], [], []),
        ("namespaces/status", "Namespace", False, _STATUS, [], []),
        ("nodes", "Node", False, _VERBS, ["no"], []),
        ("nodes/status", "Node", False, _STATUS, [], []),
        ("pods", "Pod", True, _VERBS, ["po"], ["all"]),
        ("pods/binding", "Binding", True, ["create"], [], []),
        ("pods/eviction", "Eviction", True, ["create"], [], []),
        ("pods/log", "Pod", True, ["get"], [], []),
        ("pods/status", "Pod", True, _STATUS, [], []),
        ("secrets", "Secret", True, _VERBS, [], []),
        ("serviceaccounts", "ServiceAccount", True, _VERBS, ["sa"], []),
        ("serviceaccounts/token", "TokenRequest", True, ["create"], [], []),
    ],
    "batch/v1": [
        ("cronjobs", "CronJob", True, _VERBS, ["cj"], ["all"]),
        ("cronjobs/status", "CronJob", True, _STATUS, [], []),
        ("jobs", "Job", True, _VERBS, [], ["all"]),
        ("jobs/status", "Job", True, _STATUS, [], []),
    ],
    "coordination.k8s.io/v1": [("leases", "Lease", True, _VERBS, [], [])],
    "events.k8s.io/v1": [("events", "Event", True, _VERBS, ["ev"], [])],
    "rbac.authorization.k8s.io/v1": [
        ("clusterrolebindings", "ClusterRoleBinding", False, _VERBS, [], []),
        ("clusterroles", "ClusterRole", False, _VERBS, [], []),
        ("rolebindings", "RoleBinding", True, _VERBS, [], []),
        ("roles", "Role", True, _VERBS, [], []),
    ],
    "apiextensions.k8s.io/v1": [
        ("customresourcedefinitions", "CustomResourceDefinition", False, _VERBS, ["crd", "crds"], ["api-extensions"]),
        ("customresourcedefinitions/status", "CustomResourceDefinition", False, _STATUS, [], []),
    ],
    "admissionregistration.k8s.io/v1": [
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False, _VERBS, [], ["api-extensions"]),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False, _VERBS, [], ["api-extensions"]),
    ],
    "authentication.k8s.io/v1": [
        ("selfsubjectreviews", "SelfSubjectReview", False, _REVIEW, [], []),
        ("tokenreviews", "TokenReview", False, _REVIEW, [], []),
    ],
    "authorization.k8s.io/v1": [
        ("localsubjectaccessreviews", "LocalSubjectAccessReview", True, _REVIEW, [], []),
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview", False, _REVIEW, [], []),
        ("selfsubjectrulesreviews", "SelfSubjectRulesReview", False, _REVIEW, [], []),
        ("subjectaccessreviews", "SubjectAccessReview", False, _REVIEW, [], []),
    ],
    "contract.example.com/v1": [
        ("plains", "Plain", True, _VERBS, [], []),
        ("things", "Thing", True, _VERBS, [], []),
        ("things/scale", "Scale", True, _STATUS, [], []),
        ("things/status", "Thing", True, _STATUS, [], []),
    ],
}


def _path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _group_of(version: str) -> str:
    return version.rpartition("/")[0]


for _version, _resources in _RESOURCES.items():

    def _play(version: str, resources: list[tuple[str, str, bool, list[str], list[str], list[str]]]) -> Any:
        async def resources_of(api: Api) -> None:
            body = (await api.get(_path(version))).ok(200, {"kind": "APIResourceList", "groupVersion": version})
            found = {one["name"]: one for one in body["resources"]}
            wrong = []
            for name, kind, is_namespaced, verbs, short_names, categories in resources:
                one = found.get(name)
                if one is None:
                    wrong.append(f"{name}: missing")
                    continue
                says = (
                    one["kind"],
                    one["namespaced"],
                    sorted(one["verbs"]),
                    one.get("shortNames", []),
                    one.get("categories", []),
                )
                if says != (kind, is_namespaced, sorted(verbs), short_names, categories):
                    wrong.append(f"{name}: {says}")
            if wrong:
                raise Wrong("\n    ".join(wrong))

        return resources_of

    cases.add(f"resources of {_version}", _play(_version, _resources))

    def _play_aggregated(version: str, resources: list[tuple[str, str, bool, list[str], list[str], list[str]]]) -> Any:
        async def aggregated(api: Api) -> None:
            root = "/apis" if "/" in version else "/api"
            body = (await api.get(root, accept=f"{_AGGREGATED},application/json")).ok()
            [group] = [one for one in body["items"] if one["metadata"].get("name", "") == _group_of(version)]
            [found] = [one for one in group["versions"] if one["version"] == version.rpartition("/")[2]]
            named = {one["resource"]: one for one in found["resources"]}
            wrong: list[str] = []
            for name, kind, is_namespaced, verbs, short_names, _ in resources:
                plural, _, subresource = name.partition("/")
                one = named.get(plural, {})
                if subresource:
                    subs = {sub["subresource"]: sub for sub in one.get("subresources", [])}
                    sub = subs.get(subresource, {})
                    wrong += differences({"responseKind": {"kind": kind}}, sub, name)
                    if sorted(sub.get("verbs", [])) != sorted(verbs):
                        wrong.append(f"{name}: {sub.get('verbs')}")
                else:
                    scope = "Namespaced" if is_namespaced else "Cluster"
                    wrong += differences({"responseKind": {"kind": kind}, "scope": scope}, one, name)
                    if sorted(one.get("verbs", [])) != sorted(verbs) or one.get("shortNames", []) != short_names:
                        wrong.append(f"{name}: {one}")
            if wrong:
                raise Wrong("\n    ".join(wrong))

        return aggregated

    cases.add(f"resources of {_version} by aggregated discovery", _play_aggregated(_version, _resources))

    def _play_schema(version: str) -> Any:
        async def openapi(api: Api) -> None:
            listed = await api.get("/openapi/v3")
            index = listed.ok()
            assert listed.header("content-type") == "text/plain; charset=utf-8"
            path = _path(version)[1:]
            url = index["paths"][path]["serverRelativeURL"]
            assert url.startswith(f"/openapi/v3/{path}?hash="), url
            document = (await api.get(url)).ok(200, {"openapi": TEXT, "paths": {}, "components": {"schemas": {}}})
            for name, kind, is_namespaced, verbs, _, _ in _RESOURCES[version]:
                if "/" in name or verbs == _REVIEW:
                    continue
                middle = "/namespaces/{namespace}" if is_namespaced else ""
                patch = document["paths"][f"/{path}{middle}/{name}/{{name}}"]["patch"]
                assert "fieldValidation" in str(patch), f"{name}: kubectl asks for it"
                known = patch["x-kubernetes-group-version-kind"]
                assert known == {"group": _group_of(version), "version": version.rpartition("/")[2], "kind": kind}
                found = [
                    schema
                    for schema in document["components"]["schemas"].values()
                    if known in schema.get("x-kubernetes-group-version-kind", [])
                ]
                assert found, f"{kind} has no schema"

        return openapi

    if _RESOURCES[_version][0][3] != _REVIEW or _version == "v1":
        cases.add(f"schemas of {_version}", _play_schema(_version))


@cases.case
async def versions_of_the_core_group(api: Api) -> None:
    (await api.get("/api")).ok(200, {"kind": "APIVersions", "versions": ["v1"]})


@cases.case
async def groups_and_their_versions(api: Api) -> None:
    body = (await api.get("/apis")).ok(200, {"kind": "APIGroupList", "apiVersion": "v1"})
    found = {one["name"]: one for one in body["groups"]}
    for version in _RESOURCES:
        if "/" not in version:
            continue
        group = _group_of(version)
        like = {"groupVersion": version, "version": version.rpartition("/")[2]}
        assert like in found[group]["versions"], group
        assert found[group]["preferredVersion"] == like, group


@cases.case
async def a_group(api: Api) -> None:
    version = {"groupVersion": "batch/v1", "version": "v1"}
    like = {"kind": "APIGroup", "apiVersion": "v1", "name": "batch", "versions": [version], "preferredVersion": version}
    (await api.get("/apis/batch")).ok(200, like)


@cases.case
async def a_group_that_there_is_not(api: Api) -> None:
    assert (await api.get("/apis/nobody.example.com")).status == 404
    assert (await api.get("/apis/nobody.example.com/v1")).status == 404
    assert (await api.get("/apis/batch/v9")).status == 404


@cases.case
async def the_version_is_that_of_1_36(api: Api) -> None:
    (await api.get("/version")).ok(200, {"major": "1", "minor": "36", "gitVersion": TEXT, "platform": TEXT})


@cases.case
async def schemas_say_what_kubectl_explains(api: Api) -> None:
    index = (await api.get("/openapi/v3")).ok()
    document = (await api.get(index["paths"]["apis/batch/v1"]["serverRelativeURL"])).ok()
    schemas = document["components"]["schemas"]
    job = schemas["io.k8s.api.batch.v1.Job"]
    assert set(job["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert job["description"] == "Job represents the configuration of a single job."
    spec = schemas["io.k8s.api.batch.v1.JobSpec"]
    assert {"parallelism", "completions", "suspend", "managedBy", "podFailurePolicy"} <= set(spec["properties"])
    assert spec["required"] == ["template"]
    like = {"type": "integer", "format": "int32", "description": TEXT}
    assert not list(differences(like, spec["properties"]["parallelism"]))
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-type"] == "map"


@cases.case
async def the_schema_of_a_definition_is_there(api: Api) -> None:
    path = "apis/contract.example.com/v1"
    index = await api.repeat(lambda: api.get("/openapi/v3"), lambda answer: path in answer.ok()["paths"])
    document = (await api.get(index.body["paths"][path]["serverRelativeURL"])).ok()
    schema = document["components"]["schemas"]["com.example.contract.v1.Thing"]
    assert schema["properties"]["spec"]["properties"]["size"]["maximum"] == 10


@cases.case
async def health_is_told_in_detail(api: Api) -> None:
    for path in ("/readyz", "/livez", "/healthz"):
        assert (await api.get(path)).text == "ok"
        verbose = await api.get(f"{path}?verbose")
        assert verbose.status == 200
        assert verbose.text.startswith("[+]")
        assert verbose.text.endswith(f"{path[1:]} check passed\n"), verbose.text


@cases.case
async def the_root_lists_paths(api: Api) -> None:
    paths = (await api.get("/")).ok()["paths"]
    assert {"/api", "/api/v1", "/apis", "/apis/batch", "/apis/batch/v1", "/openapi/v3", "/version"} <= set(paths)


@cases.case
async def scopes_and_singular_names(api: Api) -> None:
    body = (await api.get("/apis/batch/v1")).ok()
    assert {one["name"]: one["singularName"] for one in body["resources"] if "/" not in one["name"]} == {
        "cronjobs": "cronjob",
        "jobs": "job",
    }


@cases.case
async def aggregated_discovery_is_not_sent_again_until_it_has_changed(api: Api) -> None:
    """By the tag as it came; other cases' definitions may change it between two requests."""
    tag = "never"

    async def ask() -> Answer:
        nonlocal tag
        answer = await api.get("/apis", accept=ACCEPT, headers={"if-none-match": tag})
        tag = answer.header("etag")
        assert re.fullmatch('"[0-9A-F]+"', tag), tag
        assert answer.header("vary") == "Accept"
        if answer.status == 200:
            assert answer.header("content-type") == _AGGREGATED
            assert answer.body["kind"] == "APIGroupDiscoveryList"
        return answer

    assert (await ask()).status == 200
    unchanged = await api.repeat(ask, lambda answer: answer.status == 304)
    assert unchanged.text == ""
    listed = await api.get("/apis", accept=ACCEPT, headers={"if-none-match": f'"0", {tag}'})
    assert listed.status == 200


@cases.case
async def aggregated_discovery_is_everybody_s(api: Api) -> None:
    """Who is authenticated needs no permission for it."""
    answer = await api.impersonating("somebody").get("/apis", accept=ACCEPT)
    assert answer.ok()["kind"] == "APIGroupDiscoveryList"


@cases.case
async def a_definition_that_goes_takes_no_new_objects_in_the_aggregated_form(api: Api) -> None:
    """It stays there, current, as long as an object's finalizer keeps it."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    spec = {
        "group": "OURS.example.com",
        "scope": "Namespaced",
        "names": {"plural": "mortals", "kind": "Mortal"},
        "versions": [version],
    }
    target = "customresourcedefinitions/mortals.OURS.example.com"
    objects = "/apis/OURS.example.com/v1/namespaces/OURS/mortals"
    (await api.post("customresourcedefinitions", {"metadata": {"name": "mortals.OURS.example.com"}, "spec": spec})).ok(
        201
    )

    def verbs(answer: Answer) -> list[str] | None:
        """None where it is not listed."""
        named = [group for group in answer.ok()["items"] if group["metadata"]["name"] == "OURS.example.com"]
        found = [one for group in named for one in group["versions"]]
        if not found:
            return None
        [one] = found
        assert (one["version"], one["freshness"]) == ("v1", "Current")
        [resource] = one["resources"]
        assert resource["resource"] == "mortals"
        return sorted(resource["verbs"])

    async def until(wanted: list[str] | None) -> None:
        await api.repeat(lambda: api.get("/apis", accept=ACCEPT), lambda answer: verbs(answer) == wanted)

    await until(_VERBS)
    body = {"apiVersion": "OURS.example.com/v1", "kind": "Mortal", "metadata": {"name": "a", "finalizers": ["e.com/f"]}}
    await api.repeat(lambda: api.post(objects, body), lambda answer: answer.status in (201, 409))
    (await api.delete(target)).ok(200)
    await until(["delete", "deletecollection", "get", "list", "watch"])
    (await api.patch(f"{objects}/a", {"metadata": {"finalizers": None}})).ok(200)
    await until(None)
