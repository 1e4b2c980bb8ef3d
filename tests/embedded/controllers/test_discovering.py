"""Which kinds are served, as discovery tells it."""

from __future__ import annotations

from typing import Any

import pytest
from embedded_world import in_virtual_time, world

from mirror.embedded import memory
from mirror.embedded.controllers.client import CRONJOBS, NODES, Api
from mirror.embedded.controllers.discovering import Kinds, Unknown
from mirror.kube.errors import Unreachable
from mirror.kube.resources import JOBS, PODS


@in_virtual_time
async def test_kinds_are_found_by_what_owner_references_say() -> None:
    """With what can be done with them."""
    async with world() as here:
        kinds, api = Kinds(), Api(memory.client_of(here.wire, "test"), "test")
        await kinds.refresh(api)
        for known in (JOBS, PODS, CRONJOBS, NODES):
            assert kinds.find(known.api_version, known.kind) == known
            assert known in kinds.supporting("list", "watch", "delete")
        with pytest.raises(Unknown, match="no matches for kind Job in version batch/v2"):
            kinds.find("batch/v2", "Job")
        reviews = [one.kind for one in kinds.supporting("create") if one not in kinds.supporting("list")]
        assert "TokenReview" in reviews
        before = list(kinds)
        here.wire.server = None
        with pytest.raises(Unreachable):
            await kinds.refresh(api)
        assert list(kinds) == before


class Told:
    """Discovery of a server that serves a kind in two versions."""

    async def raw(self, path: str) -> Any:
        kind = {"name": "things", "kind": "Thing", "namespaced": True, "verbs": ["list", "delete"]}
        scale = {"name": "things/scale", "kind": "Scale", "namespaced": True, "verbs": ["get"]}
        versions = [{"version": "v1beta1"}, {"version": "v1"}]
        return {
            "/api": {"versions": []},
            "/apis": {"groups": [{"name": "x.io", "versions": versions, "preferredVersion": {"version": "v1"}}]},
            "/apis/x.io/v1beta1": {"resources": [kind, {"name": "olds", "kind": "Old", "verbs": ["list", "delete"]}]},
            "/apis/x.io/v1": {"resources": [kind, scale]},
        }[path]


@in_virtual_time
async def test_each_kind_is_treated_in_one_version() -> None:
    """The preferred one, or another that has it; any can be named by an owner reference."""
    kinds = Kinds()
    await kinds.refresh(Told())
    assert [(one.version, one.kind) for one in kinds.supporting("delete")] == [("v1", "Thing"), ("v1beta1", "Old")]
    assert kinds.find("x.io/v1beta1", "Thing").version == "v1beta1"
    assert not kinds.find("x.io/v1beta1", "Old").namespaced
