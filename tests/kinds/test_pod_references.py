"""Every place where a pod can name a ConfigMap, Secret or ServiceAccount is looked at (D27)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from mirror.embedded.apiserver.apimachinery.schemas import components
from mirror.kinds.pod_references import pod_references

Path = tuple[str, ...]
SCHEMAS = components.of_structs(("PodSpec",))
_OF_NAME = re.compile(r"(secret|configMap|serviceAccount)(Name)?", re.IGNORECASE)
_OF_TYPE = re.compile(r"(Secret|ConfigMap).*|LocalObjectReference")


def _resolve(schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The short name of a schema that is referred to, and the schema itself."""
    named = [*(schema.get("allOf") or ()), schema]
    found = next((one["$ref"].rpartition("/")[2] for one in named if "$ref" in one), "")
    return found.rpartition(".")[2], SCHEMAS[found] if found else schema


def places(schema: dict[str, Any], type_name: str, path: Path) -> Iterator[Path]:
    """Where there is a name of another object: fields called ``…Name``, and ``name`` in types that are references."""
    for field, below in (schema.get("properties") or {}).items():
        is_list = below.get("type") == "array"
        short, found = _resolve(below["items"] if is_list else below)
        step = (*path, f"{field}[]" if is_list else field)
        is_text = found.get("type") == "string"
        if is_text and (_OF_NAME.fullmatch(field) or (field == "name" and _OF_TYPE.fullmatch(type_name))):
            yield step
        elif found.get("properties") and len(step) < 8:
            yield from places(found, short, step)


def pod_with(path: Path) -> Any:
    """A pod that names ``it`` there and nowhere else."""
    made: Any = "it"
    for step in reversed(path):
        made = {step.removesuffix("[]"): [made] if step.endswith("[]") else made}
    return made


PLACES = sorted(places(next(one for name, one in SCHEMAS.items() if name.endswith(".PodSpec")), "PodSpec", ()))


def test_the_description_knows_the_places_that_everybody_knows() -> None:
    """Else the table below proves nothing."""
    known = {".".join(path) for path in PLACES}
    assert {
        "serviceAccountName",
        "imagePullSecrets[].name",
        "volumes[].secret.secretName",
        "volumes[].configMap.name",
        "volumes[].projected.sources[].secret.name",
        "volumes[].csi.nodePublishSecretRef.name",
        "initContainers[].env[].valueFrom.secretKeyRef.name",
        "containers[].envFrom[].configMapRef.name",
        "ephemeralContainers[].envFrom[].secretRef.name",
    } <= known
    assert len(known) >= 28


@pytest.mark.parametrize("path", PLACES, ids=".".join)
def test_each_place_is_found(path: Path) -> None:
    """Of the API's own description of a pod."""
    (found,) = pod_references(pod_with(path), "spec")
    text = ".".join(path).lower()
    kind = "ServiceAccount" if "serviceaccount" in text else "ConfigMap" if "configmap" in text else "Secret"
    assert (found.kind, found.name) == (kind, "it")
    assert found.path.startswith("spec.")
    assert found.is_optional == ("imagepullsecrets" in text)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"volumes": [{"secret": {"secretName": "it", "optional": True}}]}, id="a volume"),
        pytest.param(
            {"volumes": [{"projected": {"sources": [{"configMap": {"name": "it", "optional": True}}]}}]},
            id="a projection",
        ),
        pytest.param({"containers": [{"envFrom": [{"secretRef": {"name": "it", "optional": True}}]}]}, id="envFrom"),
        pytest.param(
            {
                "containers": [
                    {"env": [{"valueFrom": {"configMapKeyRef": {"name": "it", "key": "k", "optional": True}}}]}
                ]
            },
            id="env",
        ),
    ],
)
def test_optional_references_are_told_apart(pod: Any) -> None:
    """Pods run without them."""
    assert [one.is_optional for one in pod_references(pod, "spec")] == [True]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"serviceAccountName": "default"}, id="the default account"),
        pytest.param({"volumes": [{"configMap": {"name": ""}}]}, id="an empty name"),
        pytest.param(
            {"volumes": [{"projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}]},
            id="the authority that each cluster puts into each namespace",
        ),
        pytest.param(
            {"volumes": "x", "containers": [None, {"env": 3}], "imagePullSecrets": [{"name": 5}]}, id="other types"
        ),
    ],
)
def test_what_is_no_reference(pod: Any) -> None:
    """A draft that no API server has looked at may hold anything."""
    assert list(pod_references(pod, "spec")) == []
