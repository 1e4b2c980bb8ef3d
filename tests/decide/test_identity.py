"""Whose is an object on a worker (D1)."""

from __future__ import annotations

import pytest

from mirror.decide.identity import Identity, has_labels, identify, own_labels
from mirror.kube.objects import Meta, Object, OwnerReference, partial_of
from mirror.model import names

OURS = {names.ORIGIN: "o", names.SOURCE_UID: "u"}


@pytest.mark.parametrize(
    ("labels", "recorded", "identity"),
    [
        pytest.param(OURS, None, Identity.OURS, id="labelled, nothing recorded yet"),
        pytest.param(OURS, "m", Identity.OURS, id="labelled and recorded"),
        pytest.param(OURS, "other", Identity.REPLACED, id="labelled, another one is recorded"),
        pytest.param({}, "m", Identity.UNLABELED, id="recorded, without labels"),
        pytest.param(OURS | {names.SOURCE_UID: "x"}, "m", Identity.UNLABELED, id="recorded, another uid in the label"),
        pytest.param(OURS | {names.ORIGIN: "x"}, "m", Identity.UNLABELED, id="recorded, another origin"),
        pytest.param(OURS | {names.SOURCE_UID: "x"}, None, Identity.NAMESAKE, id="the mirror of another source"),
        pytest.param(OURS | {names.SOURCE_UID: "x"}, "other", Identity.NAMESAKE, id="the same, beside a record"),
        pytest.param({}, None, Identity.FOREIGN, id="no labels"),
        pytest.param({names.ORIGIN: "o"}, None, Identity.FOREIGN, id="only the origin"),
        pytest.param({names.ORIGIN: "o", names.SOURCE_UID: ""}, None, Identity.FOREIGN, id="an empty uid"),
        pytest.param({names.SOURCE_UID: "u"}, None, Identity.FOREIGN, id="only the uid"),
        pytest.param(OURS | {names.ORIGIN: "x"}, None, Identity.FOREIGN, id="of another management cluster"),
    ],
)
def test_what_is_recorded_decides_before_labels(
    labels: dict[str, str], recorded: str | None, identity: Identity
) -> None:
    """The recorded uid makes an object ours whatever its labels; without it both labels do."""
    assert identify("m", labels, origin="o", source_uid="u", recorded_uid=recorded) is identity
    assert has_labels(labels, origin="o") is (labels.get(names.ORIGIN) == "o" and bool(labels.get(names.SOURCE_UID)))


@pytest.mark.parametrize(
    ("owners", "labels"),
    [
        pytest.param([], OURS, id="a mirror has no owner"),
        pytest.param([OwnerReference("v1", "ConfigMap", "c", "1")], OURS, id="one that does not control it"),
        pytest.param([OwnerReference("tekton.dev/v1", "PipelineRun", "p", "1", controller=True)], {}, id="a child"),
    ],
)
def test_what_a_controller_has_made_is_no_mirror(owners: list[OwnerReference], labels: dict[str, str]) -> None:
    """Tekton gives a PipelineRun's labels to its TaskRuns; also where only what identifies an object is kept."""
    found = Object(Meta(name="p-main", labels=OURS, owner_references=owners))
    assert own_labels(found) == labels
    assert own_labels(partial_of(found, (names.ORIGIN, names.SOURCE_UID))) == labels
