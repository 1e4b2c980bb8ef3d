"""The roles and the webhook's rules in config/ are what the kinds of the table need, each for itself (D24)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from doubles.drills import DRILL

from mirror.kinds import permissions
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.permissions import Right
from mirror.kinds.registry import BUILT_IN
from mirror.settings.kinds import KindEntry

CONFIG = Path(__file__).parents[2] / "config"
OTHERS = {"", "authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io", "admissionregistration.k8s.io"}
"""Groups of what is no mirrored kind."""


def granted(file: str) -> set[Right]:
    """What a file's roles grant on kinds of Jobs."""
    documents = list(yaml.safe_load_all((CONFIG / "rbac" / file).read_text()))
    return {
        (group, resource, verb)
        for document in documents
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if group not in OTHERS
    }


@pytest.mark.parametrize(
    ("file", "needed"),
    [
        ("management.yaml", permissions.on_management),
        ("management-namespaced.yaml", permissions.on_management),
        ("worker.yaml", permissions.on_worker),
        ("worker-namespaced.yaml", permissions.on_worker),
        ("webhook.yaml", permissions.of_webhook),
        ("webhook-namespaced.yaml", permissions.of_webhook),
    ],
)
def test_roles_grant_what_the_kinds_need(file: str, needed: Callable[[Kind], frozenset[Right]]) -> None:
    """For every kind of the table, and nothing for any other."""
    assert granted(file) == frozenset[Right]().union(*map(needed, BUILT_IN))


def on_worker_with_more(kind: Kind) -> frozenset[Right]:
    """For mirrors, and to see whose their pods are, and whether what they name is there."""
    return permissions.on_worker(kind) | permissions.of_pod_owners(kind) | permissions.of_needs(kind)


@pytest.mark.parametrize("name", built_in())
@pytest.mark.parametrize(
    ("side", "needed"),
    [("management", permissions.on_management), ("worker", on_worker_with_more)],
    ids=("management", "worker"),
)
def test_each_kind_that_is_data_has_its_own_roles(
    name: str, side: str, needed: Callable[[Kind], frozenset[Right]]
) -> None:
    """What it needs and nothing else, bound to our account."""
    kind = kinds_of([KindEntry(kind=name)])[name]
    file = f"kinds/{side}-{name.lower()}.yaml"
    role, binding = yaml.safe_load_all((CONFIG / "rbac" / file).read_text())

    assert granted(file) == needed(kind)
    assert role["metadata"]["name"] == binding["roleRef"]["name"] == f"jobmirror-{side}-{name.lower()}"
    (subject,) = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == ("jobmirror", "jobmirror-system")


@pytest.mark.parametrize("name", built_in())
@pytest.mark.parametrize("base", ["worker.yaml", "worker-namespaced.yaml"])
def test_whatever_may_make_pods_of_a_kind_can_be_read(name: str, base: str) -> None:
    """To see whose pods they are that may not be created: that takes no more than mirrors and the kind's file have."""
    kind = kinds_of([KindEntry(kind=name)])[name]
    needed = {(one.group, one.plural, "get") for one in kind.pod_owners}
    assert needed <= granted(base) | granted(f"kinds/worker-{name.lower()}.yaml")
    assert granted("worker-pods.yaml") == set()


def test_there_are_roles_of_these_kinds_only() -> None:
    """Nothing is left of one that is not built in any more."""
    found = {path.stem for path in (CONFIG / "rbac" / "kinds").glob("*.yaml")}
    assert found == {f"{side}-{name.lower()}" for name in built_in() for side in ("management", "worker")}


def test_the_webhook_is_asked_about_every_kind() -> None:
    """Its rules name the resources of the table."""
    asked = {
        (group, version, resource)
        for document in yaml.safe_load_all((CONFIG / "webhook.yaml").read_text())
        if document["kind"].endswith("WebhookConfiguration")
        for hook in document["webhooks"]
        for rule in hook["rules"]
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
        for resource in rule["resources"]
    }

    assert asked == {(kind.resource.group, kind.resource.version, kind.resource.plural) for kind in BUILT_IN}


def test_a_kind_whose_status_drops_annotations_needs_a_second_right() -> None:
    """D25: they are a request of their own; its mirrors need what a Job's need."""
    needed = permissions.on_management(DRILL)

    assert ("example.com", "drills", "patch") in needed
    assert ("example.com", "drills/status", "patch") in needed
    assert {verb for _, _, verb in permissions.on_worker(DRILL)} == set(permissions.MIRROR_VERBS)
