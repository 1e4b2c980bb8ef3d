"""Nodes: what may be given on create, what stays, taints."""

from __future__ import annotations

import pytest

from tests.embedded.apiserver.registry.resources.playing import Json, create, stored, update


def test_a_node_may_come_with_a_status() -> None:
    """As kubelets register; what can be used is what there is, unless it says otherwise."""
    body = create("Node", {"status": {"capacity": {"cpu": "4"}, "config": {}}, "spec": {"configSource": {}}}).body

    assert body["status"]["capacity"] == body["status"]["allocatable"] == {"cpu": "4"}
    assert "config" not in body["status"]
    assert body["spec"] == {}


def test_a_status_does_not_change_through_the_object() -> None:
    """Nor the spec through ``/status``."""
    old = stored("Node", {"status": {"capacity": {"cpu": "4"}}})
    change = {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "8"}, "allocatable": None}}

    assert update("Node", old, change).body["status"] == old["status"]
    made = update("Node", old, change, subresource="status").body
    assert made["status"]["allocatable"] == {"cpu": "8"}
    assert made["spec"] == {}


def test_address_ranges() -> None:
    """The single one is the first of the list, and neither changes once it is there."""
    old = stored("Node", {"spec": {"podCIDR": "10.1.0.0/24"}})
    assert old["spec"]["podCIDRs"] == ["10.1.0.0/24"]

    change = {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}}
    assert update("Node", old, change).causes == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'
    ]


@pytest.mark.parametrize(
    ("ranges", "cause"),
    [
        (["10.0.0.0/24", "fd00::/64"], ""),
        (["x"], "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        (["10.0.0.0/024"], "must not have leading 0s in IP or prefix length"),
        (["10.0.0.1/24"], "must not have bits set beyond the prefix length"),
        (["::ffff:10.0.0.0/120"], "must not have an IPv4-mapped IPv6 address"),
        (["10.0.0.0/24", "10.1.0.0/24"], "may specify no more than one CIDR for each IP family"),
    ],
)
def test_ranges_are_judged(ranges: list[str], cause: str) -> None:
    """One of each family."""
    found = create("Node", {"spec": {"podCIDRs": ranges}}).causes

    assert [one.endswith(cause) for one in found] == ([True] if cause else [])


def test_taints() -> None:
    """One of each key and effect; a cause of an update stands twice, as the server has it."""
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "X"}]
    causes = [
        'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints'
        " must be unique by key and effect pair",
        'metadata.taints[2].effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule",'
        ' "NoExecute"',
    ]

    assert create("Node", {"spec": {"taints": taints}}).causes == causes
    assert update("Node", stored("Node"), {"spec": {"taints": taints}}).causes == causes * 2


@pytest.mark.parametrize(
    ("old", "change", "cause"),
    [
        (
            {"providerID": "x"},
            {"providerID": "y"},
            "spec.providerID: Forbidden: node updates may not change providerID",
        ),
        ({}, {"externalID": "y"}, "spec.externalID: Forbidden: may not be updated"),
    ],
)
def test_what_stays(old: Json, change: Json, cause: str) -> None:
    """Once it is set, or always."""
    (found,) = update("Node", stored("Node", {"spec": old}), {"spec": change}).causes

    assert found.startswith(cause)


def test_addresses_come_once() -> None:
    """In a status."""
    address = {"type": "InternalIP", "address": "10.0.0.1"}
    made = update("Node", stored("Node"), {"status": {"addresses": [address, address]}}, subresource="status")

    assert made.causes == ['status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"10.0.0.1"}']
