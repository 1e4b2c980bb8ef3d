"""What a Secret says about a worker."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest
from doubles.jobs import as_object

from mirror.kube.objects import Object
from mirror.model import names
from mirror.workers.spec import BadSecret, WorkerSpec, read_spec

KUBECONFIG = b"apiVersion: v1"


def secret(annotations: Mapping[str, str] | None = None, data: Mapping[str, str] | None = None) -> Object:
    text = base64.b64encode(KUBECONFIG).decode()
    metadata = {"name": "east", "uid": "u", "labels": {names.WORKER: "true", "region": "eu"}}
    metadata["annotations"] = {names.PREFIX + key: value for key, value in (annotations or {}).items()}
    return as_object({"metadata": metadata, "data": {"kubeconfig": text} if data is None else dict(data)})


def test_a_plain_secret_is_a_worker_with_defaults() -> None:
    """Its name is implied as a label; our own labels are not the worker's."""
    labels = (("name", "east"), ("region", "eu"))
    assert read_spec(secret()) == WorkerSpec("east", "u", KUBECONFIG, labels)


@pytest.mark.parametrize(
    ("annotations", "field", "value"),
    [
        pytest.param({"cordoned": "true"}, "cordoned", True, id="cordoned"),
        pytest.param({"cordoned": " True "}, "cordoned", True, id="as people write it"),
        pytest.param({"cordoned": "false"}, "cordoned", False, id="said to be open"),
        pytest.param({"drain": "wait"}, "draining", True, id="drained by waiting"),
        pytest.param({"drain": "move"}, "draining", True, id="drained by moving"),
        pytest.param({"drain": "move-started"}, "drain", "move-started", id="drained by moving what runs, too"),
        pytest.param({"capacity": "0"}, "capacity", 0, id="no capacity"),
        pytest.param({"capacity": "250"}, "capacity", 250, id="a capacity"),
        pytest.param({"weight": "2.5"}, "weight", 2.5, id="a weight"),
        pytest.param({"namespaces": "a, ml-*"}, "namespaces", ("a", "ml-*"), id="names and globs"),
        pytest.param({"namespace-prefix": "run-"}, "namespace_prefix", "run-", id="a prefix"),
    ],
)
def test_annotations_are_read(annotations: dict[str, str], field: str, value: Any) -> None:
    """Design §2, without complaints."""
    spec = read_spec(secret(annotations))
    assert getattr(spec, field) == value
    assert spec.problems == ()


def test_a_misspelt_annotation_is_pointed_out_and_stops_nothing() -> None:
    """An unbounded worker is what its author did not want (D22)."""
    spec = read_spec(secret({"capactiy": "3", "cordonned": "true", "weight": "2", "for-cluster-profiles": "a"}))
    assert spec.mistakes == (
        "unknown annotation jobmirror.io/capactiy (did you mean jobmirror.io/capacity?)",
        "unknown annotation jobmirror.io/cordonned (did you mean jobmirror.io/cordoned?)",
    )
    assert (spec.problems, spec.capacity, spec.cordoned) == ((), None, False)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        pytest.param("cordoned", "yes", id="not a boolean"),
        pytest.param("drain", "now", id="no way to drain"),
        pytest.param("capacity", "-1", id="less than nothing"),
        pytest.param("capacity", "1.5", id="half a Job"),
        pytest.param("capacity", "٣", id="digits of another script"),
        pytest.param("capacity", "9" * 10, id="absurd"),
        pytest.param("weight", "0", id="no weight at all"),
        pytest.param("weight", "nan", id="not a number"),
        pytest.param("weight", "heavy", id="a word"),
        pytest.param("namespaces", " , ", id="empty, which would close it or open it to all"),
        pytest.param("namespaces", "a b", id="blanks"),
        pytest.param("namespaces", "UPPER", id="no namespace is written so"),
        pytest.param("namespace-prefix", "run_", id="no namespace could have it"),
        pytest.param("namespace-prefix", "-x", id="begins with a dash"),
        pytest.param("namespace-prefix", "x" * 60, id="leaves no room for a name"),
    ],
)
def test_a_mistake_is_named_with_its_annotation(key: str, text: str) -> None:
    """It stops new Jobs and nothing else, so the rest is read all the same."""
    spec = read_spec(secret({key: text}))
    (problem,) = spec.problems
    assert problem.field == f"metadata.annotations[{names.PREFIX}{key}]"
    assert str(problem).startswith(problem.field)
    assert spec.kubeconfig == KUBECONFIG


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="no data"),
        pytest.param({"config": "eA=="}, id="another key"),
        pytest.param({"kubeconfig": ""}, id="empty"),
        pytest.param({"kubeconfig": "%%%"}, id="not base64"),
    ],
)
def test_without_a_kubeconfig_there_is_no_worker(data: dict[str, str]) -> None:
    """The message names the key; nothing of the content is shown."""
    with pytest.raises(BadSecret) as refused:
        read_spec(secret(data=data))
    assert refused.value.problem.field == "data.kubeconfig"
    assert ("is missing (found: config)" in str(refused.value)) == ("config" in data)
    assert "%%%" not in str(refused.value)
