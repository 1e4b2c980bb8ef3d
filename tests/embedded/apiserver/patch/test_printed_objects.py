"""Objects as refusals of patches show them."""

from __future__ import annotations

import pytest

from mirror.embedded.apiserver.patch import merge_patch


@pytest.mark.parametrize(
    ("struct", "given", "shown"),
    [
        ("Pod", ("spec", "apiVersion", "kind"), ["kind", "apiVersion", "spec"]),
        ("OwnerReference", ("uid", "name", "kind", "apiVersion"), ["apiVersion", "kind", "name", "uid"]),
        ("ManagedFieldsEntry", ("apiVersion", "operation", "manager"), ["manager", "operation", "apiVersion"]),
        ("TypedLocalObjectReference", ("name", "kind", "apiGroup"), ["apiGroup", "kind", "name"]),
        ("ObjectMeta", ("uid", "selfLink", "name", "x"), ["name", "selfLink", "uid", "x"]),
    ],
    ids=["an object", "an owner", "a manager", "a typed reference", "metadata with an unknown field"],
)
def test_fields_are_in_the_order_of_the_types_of_the_server(
    struct: str, given: tuple[str, ...], shown: list[str]
) -> None:
    """Kind and version come first in objects, but not in what only refers to one."""
    assert list(merge_patch.in_order(dict.fromkeys(given, "x"), struct)) == shown
