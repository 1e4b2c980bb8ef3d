"""The permissions for other kinds: the chart has them by its list of kinds, kustomize by a component for each."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from e2e import manifests
from e2e.controlplane.client import Json
from e2e.manifests import Key, by_key, charted, key, kustomized
from mirror.kinds.declared.choosing import built_in

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]

OWN = {"kind": "Simulation", "resource": "simulations.v1beta1.example.com"}


def of_kinds(objects: list[Json]) -> dict[Key, Json]:
    """What is there for kinds alone, without the labels that only Helm gives."""
    found = {name: one for name, one in by_key(objects).items() if name[2].startswith("jobmirror-management-")}
    for one in found.values():
        one["metadata"].pop("labels")
    return found


def names(objects: list[Json]) -> list[Key]:
    return sorted(key(one) for one in objects if one["metadata"]["name"].startswith("jobmirror-management-"))


def test_the_chart_gives_what_the_components_give(tmp_path: Path) -> None:
    """Kind by kind; none of them by default."""
    kinds = sorted(built_in())
    components = [f"jobmirror/deploy/kustomize/components/kinds/{kind.lower()}" for kind in kinds]
    kustomization: Json = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    kustomization |= {"resources": ["jobmirror/deploy/kustomize/overlays/single"], "components": components}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    (tmp_path / "jobmirror").symlink_to(manifests.TOP)
    chart = of_kinds(charted({"config": {"kinds": kinds}}))

    assert chart == of_kinds(kustomized(tmp_path))
    assert len(chart) == 2 * len(kinds)
    assert names(charted({})) == []


@pytest.mark.parametrize("entry", ["JobSet", {"kind": "JobSet"}, {"resource": "jobsets.v1alpha2.jobset.x-k8s.io"}])
def test_a_kind_that_is_built_in_is_found_by_whatever_names_it(entry: object) -> None:
    """As in the settings; Jobs need no more than they have anyway."""
    assert [name for _, _, name in names(charted({"config": {"kinds": [entry, "Job"]}}))] == [
        "jobmirror-management-jobset",
        "jobmirror-management-jobset",
    ]


def test_one_of_ones_own_gets_the_same_rights_as_one_that_is_built_in() -> None:
    """On its own resource, and its status."""
    found = by_key(charted({"config": {"kinds": [OWN, "MPIJob"]}}, namespace="elsewhere"))
    own, other = "jobmirror-management-simulations.example.com", "jobmirror-management-mpijob"
    rules = found["ClusterRole", "", own]["rules"]

    assert [(rule["apiGroups"], rule["resources"]) for rule in rules] == [
        (["example.com"], ["simulations"]),
        (["example.com"], ["simulations/status"]),
    ]
    assert [rule["verbs"] for rule in rules] == [rule["verbs"] for rule in found["ClusterRole", "", other]["rules"]]
    lives = by_key(charted({"config": {"kinds": [{**OWN, "timeToLive": "spec.ttlSecondsAfterFinished"}]}}))
    assert "delete" in lives["ClusterRole", "", own]["rules"][0]["verbs"]
    binding = found["ClusterRoleBinding", "", own]
    assert (binding["roleRef"]["name"], binding["subjects"][0]["namespace"]) == (own, "elsewhere")


def test_chosen_namespaces_get_roles() -> None:
    """And there is nothing for the whole cluster."""
    found = names(charted({"config": {"kinds": ["JobSet", OWN], "namespaces": ["one", "two"]}}))

    assert {(kind, namespace) for kind, namespace, _ in found} == {
        (kind, namespace) for kind in ("Role", "RoleBinding") for namespace in ("one", "two")
    }
    assert len(found) == 8


def test_the_webhook_is_asked_about_each_kind(tmp_path: Path) -> None:
    """By the chart's list, by the components, and nobody about a kind that is not enabled."""
    components = [f"jobmirror/deploy/kustomize/components/kinds/{kind.lower()}" for kind in sorted(built_in())]
    kustomization: Json = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    kustomization |= {"resources": ["jobmirror/deploy/kustomize/overlays/webhook"], "components": components}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    (tmp_path / "jobmirror").symlink_to(manifests.TOP)
    enabled = {"enabled": True}
    chart = rules_of(charted({"config": {"kinds": sorted(built_in()), "webhook": enabled}}))

    assert chart == rules_of(kustomized(tmp_path))
    assert [len(rules) for rules in chart.values()] == [1 + len(built_in())] * 3
    assert [len(rules) for rules in rules_of(charted({"config": {"webhook": enabled}})).values()] == [1, 1, 1]
    own = rules_of(charted({"config": {"kinds": [OWN], "webhook": enabled}}))
    assert own["annotations.jobmirror.io"][1] == {
        "apiGroups": ["example.com"],
        "apiVersions": ["v1beta1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["simulations"],
        "scope": "Namespaced",
    }


def rules_of(objects: list[Json]) -> dict[str, list[Json]]:
    """What the webhooks are asked about, by their names."""
    found = (one for one in objects if one["kind"].endswith("WebhookConfiguration"))
    return {hook["name"]: hook["rules"] for one in found for hook in one["webhooks"]}


def test_a_kind_that_nobody_knows_is_refused() -> None:
    """By the chart, before the manager would."""
    with pytest.raises(AssertionError, match=r"config\.kinds: JobSex is not built in; one of your own needs resource"):
        charted({"config": {"kinds": ["JobSex"]}})
