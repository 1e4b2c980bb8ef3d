"""Source and mirror compared, and what a Job needs beside itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.kinds.base import BadDraft, MirrorTransform
from mirror.kinds.batch_job.body import mirror_body
from mirror.kinds.batch_job.differences import MOST_DIFFERENCES, before, between, draft
from mirror.kinds.dependencies import DependencyPolicy
from mirror.kinds.report import Difference
from mirror.kube.objects import Object, decode_object
from mirror.model import names

TRANSFORM = MirrorTransform("origin", strip_labels=("team/*",), set_labels=(("queue", "batch"),))


def source(spec: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **metadata: Any) -> Object:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Never"} | (pod or {})}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team", "uid": "u1"} | metadata,
        "spec": {"managedBy": names.DEFAULT_MANAGED_BY, "template": template} | (spec or {}),
    }
    return draft(msgspec.json.encode(body))


def mirror_of(found: Object, change: Any = lambda body: None) -> Object:
    body = mirror_body(found, namespace="team", transform=TRANSFORM)
    change(body)
    return decode_object(msgspec.json.encode(body))


def by_path(differences: tuple[Difference, ...]) -> dict[str, Difference]:
    return {one.path: one for one in differences}


def test_what_will_be_stripped_is_told_with_its_reason() -> None:
    """Before there is a mirror: what the Job has and its mirror will not."""
    found = by_path(
        before(
            source({"ttlSecondsAfterFinished": 5}, labels={"team/cost": "a", "app": "b"}, finalizers=["x/y"]),
            transform=TRANSFORM,
        ).differences
    )
    assert found["spec.managedBy"].kind == "stripped"
    assert (found["spec.ttlSecondsAfterFinished"].source, found["spec.ttlSecondsAfterFinished"].mirror) == ("5", None)
    assert found["metadata.labels[team/cost]"].because == "setting mirrors.strip.labels"
    assert (found["metadata.labels[queue]"].kind, found["metadata.labels[queue]"].mirror) == ("ours", '"batch"')
    assert found["metadata.finalizers"].kind == "stripped"
    assert "metadata.labels[app]" not in found


def test_a_mirror_as_it_should_be_differs_only_on_purpose() -> None:
    """Nothing of it is the worker's doing."""
    found = source()
    report = between(found, mirror_of(found), transform=TRANSFORM)
    assert {one.kind for one in report.differences} <= {"stripped", "ours"}


def test_what_was_done_on_the_worker_is_told_apart() -> None:
    """Added by its admission, changed, removed."""

    def change(body: dict[str, Any]) -> None:
        containers = body["spec"]["template"]["spec"]["containers"]
        containers[0]["image"] = "other"
        containers.append({"name": "injected"})
        del body["metadata"]["labels"]["app"]

    found = source(labels={"app": "b"})
    told = by_path(between(found, mirror_of(found, change), transform=TRANSFORM).differences)

    assert told["spec.template.spec.containers[injected]"].kind == "worker"
    image = told["spec.template.spec.containers[main].image"]
    assert (image.kind, image.source, image.mirror) == ("pending", '"i"', '"other"')
    assert told["metadata.labels[app]"].kind == "pending"


def test_differences_are_bounded() -> None:
    """A mirror that was filled with thousands of labels is told to be cut."""
    found = source()
    full = mirror_of(found, lambda body: body["metadata"]["labels"].update({f"l{n}": "x" for n in range(1000)}))
    report = between(found, full, transform=TRANSFORM)
    assert (len(report.differences), report.is_cut) == (MOST_DIFFERENCES, True)


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        ({"serviceAccountName": "robot"}, "ServiceAccount robot"),
        ({"imagePullSecrets": [{"name": "reg"}]}, "Secret reg"),
        ({"volumes": [{"name": "v", "configMap": {"name": "conf"}}]}, "ConfigMap conf"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "keys"}}]}, "Secret keys"),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "p"}}]}}]}, "Secret p"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}, "PersistentVolumeClaim data"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}, "worker's node"),
        ({"containers": [{"name": "a", "envFrom": [{"configMapRef": {"name": "e"}}]}]}, "ConfigMap e"),
        (
            {"initContainers": [{"name": "a", "env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "s"}}}]}]},
            "Secret s",
        ),
        ({"priorityClassName": "high"}, "PriorityClass high"),
        ({"nodeSelector": {"a": "b"}}, "the worker's nodes"),
    ],
)
def test_what_is_not_copied_is_told(pod: dict[str, Any], told: str) -> None:
    """Each reference with where it is."""
    cautions = before(source(pod=pod), transform=TRANSFORM).cautions
    assert [one for one in cautions if told in one.text], cautions


def test_a_misspelt_annotation_is_told_with_what_was_meant() -> None:
    """D22: it would be placed as if it had none."""
    found = source(annotations={"jobmirror.io/workers-selector": "region=eu"})
    (caution,) = before(found, transform=TRANSFORM).cautions
    assert caution.path == "metadata.annotations"
    assert caution.text == (
        "unknown annotation jobmirror.io/workers-selector (did you mean jobmirror.io/worker-selector?)"
    )


def test_what_may_be_missing_is_no_caution() -> None:
    """An optional reference, the default account, a plain Job."""
    optional = {"name": "a", "envFrom": [{"secretRef": {"name": "s", "optional": True}}]}
    found = source(pod={"containers": [optional], "serviceAccountName": "default"})
    assert before(found, transform=TRANSFORM).cautions == ()


BY_SETTINGS = ", if the manager's setting dependencies allows it"


@pytest.mark.parametrize(
    ("policy", "carry", "told"),
    [
        pytest.param(None, "secrets", {"Secret s goes along" + BY_SETTINGS}, id="settings unknown"),
        pytest.param(DependencyPolicy(frozenset(("Secret",))), "secrets", {"Secret s goes along"}, id="allowed"),
        pytest.param(
            DependencyPolicy(frozenset(("ConfigMap",))),
            "secrets,configmaps",
            {
                "ConfigMap c goes along where it exists",
                "Secret s does not go along, since the manager's setting dependencies does not allow it: "
                "it has to exist in the Job's namespace on the worker",
            },
            id="one kind is allowed",
        ),
        pytest.param(
            DependencyPolicy(frozenset(("Secret",))),
            None,
            {"Secret s is not copied: it has to exist in the Job's namespace on the worker"},
            id="not asked for",
        ),
        pytest.param(
            DependencyPolicy(frozenset(("Secret",))),
            "secret",
            {
                "secret is unknown; write some of configmaps, secrets, serviceaccounts, comma-separated",
                "Secret s is not copied: it has to exist in the Job's namespace on the worker",
            },
            id="misspelt",
        ),
    ],
)
def test_what_goes_along_is_told_before_it_is_sent(
    policy: DependencyPolicy | None, carry: str | None, told: set[str]
) -> None:
    """D27: what goes along, and what will be missing."""
    volumes = [
        {"name": "one", "secret": {"secretName": "s"}},
        {"name": "two", "configMap": {"name": "c", "optional": True}},
    ]
    found = source(pod={"volumes": volumes}, annotations={names.CARRY: carry} if carry is not None else {})
    transform = MirrorTransform(TRANSFORM.origin, dependencies=policy)
    assert {one.text for one in before(found, transform=transform).cautions} == told


def test_a_job_of_somebody_else_is_said_not_to_be_mirrored() -> None:
    """The commonest mistake."""
    (caution,) = before(source({"managedBy": None}), transform=TRANSFORM).cautions
    assert caution.path == "spec.managedBy"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "env", "valueFrom", "secretKeyRef", "x"]), inner, max_size=4)
    ),
    max_leaves=15,
)


POD_FIELDS = ["containers", "volumes", "imagePullSecrets", "affinity", "nodeSelector", "resourceClaims"]


@given(
    spec=st.dictionaries(st.sampled_from(["selector", "suspend", "podFailurePolicy", "template", "other"]), JSON),
    pod=st.dictionaries(
        st.sampled_from(POD_FIELDS),
        JSON,
    ),
)
def test_whatever_a_user_sends_is_compared_or_refused(spec: dict[str, Any], pod: dict[str, Any]) -> None:
    """No API server has looked at a draft."""
    try:
        found = source(spec, pod)
    except BadDraft:
        return
    before(found, transform=TRANSFORM)


@given(JSON)
def test_what_is_no_job_is_no_draft(junk: Any) -> None:
    """Any JSON."""
    with pytest.raises(BadDraft):
        draft(msgspec.json.encode(junk))
