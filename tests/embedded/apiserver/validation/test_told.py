"""How refusals and warnings are told."""

from __future__ import annotations

import pytest

from mirror.batch.violations import Violation
from mirror.embedded.apiserver.apimachinery.errors import invalid
from mirror.embedded.apiserver.registry.resources.jobs import warnings_of
from tests.embedded.apiserver.validation.jobs import Json, changed, created, job, stored

ONE = Violation("spec.a", "FieldValueRequired", "Required value")
OTHER = Violation("spec.b", "FieldValueInvalid", "Invalid value: 1: bad")
MANY: Json = {"completionMode": "Indexed", "completions": 100_001, "parallelism": 10_001}
TOO_MANY = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes"
    " might not be able to track completedIndexes when a big number of indexes fail"
)


@pytest.mark.parametrize(
    ("violations", "told"),
    [
        ([ONE], "spec.a: Required value"),
        ([ONE, ONE], "spec.a: Required value"),
        ([ONE, OTHER, ONE], "[spec.a: Required value, spec.b: Invalid value: 1: bad]"),
    ],
)
def test_the_message_has_each_cause_once(violations: list[Violation], told: str) -> None:
    """E1, E2: the list of causes has them all."""
    status = invalid("Job", "batch", "train", violations).status

    assert f'Job.batch "train" is invalid: {told}' == status["message"]
    assert len(violations) == len(status["details"]["causes"])
    assert (status["details"]["causes"][0]) == {
        "reason": "FieldValueRequired",
        "message": "Required value",
        "field": "spec.a",
    }
    assert (
        status["code"],
        status["reason"],
        *map(status["details"].get, ("group", "kind", "name")),
    ) == (422, "Invalid", "batch", "Job", "train")


def test_a_job_without_a_name_is_refused_without_one() -> None:
    assert "name" not in invalid("Job", "batch", "", [ONE]).status["details"]


def test_a_plain_job_gets_no_warning() -> None:
    assert warnings_of(created(job()), None) == []


def test_a_name_that_is_no_label_is_warned_of_when_it_is_created() -> None:
    """DF17."""
    old = stored(job(meta={"name": "a.b"}))
    (warning,) = warnings_of(old, None)

    assert warning.endswith("a DNS label is recommended: [must not contain dots]")
    assert warnings_of(changed(old, {"suspend": True}), old) == []


def test_many_indexes_are_warned_of_whenever_the_spec_changes() -> None:
    """DF17."""
    old = stored(job(MANY))

    assert warnings_of(old, None) == [TOO_MANY]
    assert warnings_of(changed(old, {"suspend": True}), old) == [TOO_MANY]
    assert warnings_of(changed(old), old) == []


PODS: dict[str, tuple[Json, Json, str]] = {
    "an old label": (
        {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
        {},
        'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
    ),
    "spread of no pods": (
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {},
        "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
    ),
    "a secret twice": (
        {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
        {},
        'spec.imagePullSecrets[1].name: duplicate name "a"',
    ),
    "part of a byte": (
        {},
        {"resources": {"requests": {"memory": "100m"}}},
        'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer',
    ),
    "a variable twice": (
        {},
        {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
    ),
    "a port twice": (
        {},
        {"ports": [{"containerPort": 80}, {"containerPort": 80}]},
        "spec.containers[0].ports[1]: duplicate port definition with spec.template.spec.containers[0].ports[0]",
    ),
    "a file twice": (
        {"volumes": [{"name": "a", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}] * 2}}]},
        {},
        'volume "a" (Secret "s"): overlapping paths: "p" with "p"',
    ),
    "a file below another": (
        {
            "volumes": [
                {
                    "name": "a",
                    "projected": {
                        "sources": [
                            {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
                            {"serviceAccountToken": {"path": "p/t"}},
                        ]
                    },
                }
            ]
        },
        {},
        'volume "a" (Projected): overlapping paths: "p/t" (ServiceAccountToken) with "p" (ConfigMap "c")',
    ),
    "negative grace": (
        {"terminationGracePeriodSeconds": -1},
        {},
        "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
    ),
    "an old volume": (
        {"volumes": [{"name": "a", "gitRepo": {"repository": "r"}}]},
        {},
        "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
    ),
}


@pytest.mark.parametrize(("pod", "main", "warning"), PODS.values(), ids=PODS)
def test_warnings_of_a_pod_template(pod: Json, main: Json, warning: str) -> None:
    """DF17; those about a volume name it instead of a path."""
    expected = warning if warning.startswith("volume ") else f"spec.template.{warning}"

    assert warnings_of(created(job(pod=pod, main=main)), None) == [expected]


def test_a_variable_made_of_its_former_value_is_fine() -> None:
    env = [{"name": "PATH", "value": "/a"}, {"name": "PATH", "value": "$(PATH):/b"}]

    assert warnings_of(created(job(main={"env": env})), None) == []
