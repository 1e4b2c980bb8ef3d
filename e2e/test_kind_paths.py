"""Nothing that the table says of a kind is unknown to the definition that the kind's project ships."""

from __future__ import annotations

import json

import pytest

from e2e.go_modules import definition_of
from mirror.kinds.declared.choosing import built_in
from mirror.kinds.declared.schemas import unknown_fields
from mirror.kube.openapi import Schema


@pytest.mark.parametrize("name", built_in())
def test_a_manager_says_nothing_of_a_kind_that_is_built_in(name: str) -> None:
    """Of releases as they were tested: who runs it, how it is held, how it ends."""
    entry = built_in()[name]
    _, version, _ = entry.resource.split(".", 2)
    versions = {one["name"]: one["schema"]["openAPIV3Schema"] for one in definition_of(name)["spec"]["versions"]}

    assert unknown_fields(entry, Schema(json.dumps(versions[version]).encode())) == []
