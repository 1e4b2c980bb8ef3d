"""What the pods of other kinds than Job refer to goes along, by the templates that their entries name (D24, D27)."""

from __future__ import annotations

import pytest
from doubles.drills import definition, drill
from doubles.jobs import Body
from doubles.world import World, manager_of

from mirror.kinds.base import MirrorTransform
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.dependencies import DependencyPolicy
from mirror.model import names
from mirror.settings.load import parse

pytestmark = pytest.mark.looptime

SETTINGS = b"""
kinds:
- kind: Drill
  resource: drills.v1.example.com
  managedBy: {path: spec.run.managedBy}
  suspend: {path: spec.run.paused}
  done: {succeeded: [condition Succeeded=True], failed: [condition Broken=True]}
  suspended: {conditions: [{type: Paused}]}
  lost: {conditions: [{type: Broken}]}
  templates: ["spec.parts[].template"]
"""


def reading(*config_maps: str) -> Body:
    """A Drill with a part for each of these, whose pods read it."""
    body = drill()
    body["metadata"]["annotations"] = {names.CARRY: "configmaps"}
    body["spec"]["parts"] = [
        {"template": {"spec": {"containers": [{"name": "main", "envFrom": [{"configMapRef": {"name": name}}]}]}}}
        for name in config_maps
    ]
    return body


async def test_each_template_is_looked_at_and_its_mirror_owns_the_copies() -> None:
    """What is missing is waited for; copies come before the mirror; a change follows."""
    world = World()
    east = world.add_worker("east").server
    here = world.management.server
    for server in (here, east):
        server.put("customresourcedefinitions", definition())
    here.put("configmaps", {"metadata": {"name": "first", "namespace": "default"}, "data": {"a": "1"}})
    settings = {
        "transform": MirrorTransform(world.origin, dependencies=DependencyPolicy(frozenset(("ConfigMap",)))),
        "dependency_interval_seconds": 60.0,
        "kinds": kinds_of(parse(SETTINGS, "f").kinds),
    }
    async with manager_of(world, **settings) as manager:
        await manager.settle()
        here.put("drills", reading("first", "second"))
        await manager.settle()
        (unmet,) = [one for one in here.all("drills")[0]["status"]["conditions"] if one["type"] == names.PROGRESSING]
        assert (unmet["reason"], east.all("drills")) == ("DependencyMissing", [])
        assert unmet["message"] == "ConfigMap second does not exist in the Job's namespace"

        here.put("configmaps", {"metadata": {"name": "second", "namespace": "default"}, "data": {"b": "2"}})
        await manager.settle(30)
        (mirror,) = east.all("drills")
        sent = [one.path.rpartition("/")[2] for one in world.workers["east"].writes() if one.verb == "create"]
        assert sent == ["configmaps", "configmaps", "drills"]
        for name, data in (("first", {"a": "1"}), ("second", {"b": "2"})):
            copy = east.get("configmaps", name, "default")
            (owner,) = copy["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["apiVersion"], owner["uid"]) == (
                "Drill",
                "example.com/v1",
                mirror["metadata"]["uid"],
            )
            assert copy["data"] == data

        here.edit("configmaps", "first", lambda body: body.update(data={"a": "3"}), "default")
        await manager.settle(70)
        assert east.get("configmaps", "first", "default")["data"] == {"a": "3"}
