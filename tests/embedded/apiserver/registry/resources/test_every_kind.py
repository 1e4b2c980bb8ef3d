"""What holds for every built-in kind: its hooks agree with each other, and nothing that comes in is changed."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.embedded.apiserver.registry.resources.playing import CONTAINERS, KINDS, NOW, Json, context, kind_of, stored

POD = {**CONTAINERS, "restartPolicy": "Never"}
EVENT = {"action": "Run", "reason": "Ran", "type": "Normal", "reportingController": "c", "reportingInstance": "i"}
BODIES: dict[tuple[str, str], Json] = {
    ("", "Pod"): {"spec": POD},
    ("batch", "Job"): {"spec": {"template": {"spec": POD}}},
    ("batch", "CronJob"): {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": POD}}}}},
    ("", "Event"): {"involvedObject": {"kind": "Job", "name": "j", "namespace": "default"}},
    ("events.k8s.io", "Event"): EVENT
    | {"eventTime": "2026-11-21T12:00:00Z", "regarding": {"kind": "Job", "name": "j", "namespace": "default"}},
}
STORED = sorted(key for key, kind in KINDS.items() if "get" in kind.verbs)


@pytest.mark.parametrize(("group", "name"), STORED)
class TestEveryKind:
    def test_a_small_object_is_accepted_and_stays_as_it_is(self, group: str, name: str) -> None:
        """Decoding, defaulting and preparing what is stored gives what is stored."""
        body = stored(name, BODIES.get((group, name)), group=group)
        strategy, before = kind_of(name, group).strategy, deepcopy(body)

        new = strategy.decode(body)
        strategy.default(new, context())
        new = strategy.prepare_update(new, body, context())

        assert list(strategy.check_update(new, body, context())) == []
        assert strategy.served(new) == body == before

    def test_each_subresource_changes_nothing_by_itself(self, group: str, name: str) -> None:
        """Sending back what was read is no change."""
        body = stored(name, BODIES.get((group, name)), group=group)
        strategy = kind_of(name, group).strategy

        for way in strategy.subresources.values():
            new = strategy.decode(body)
            strategy.default(new, context())
            new = way.prepare(new, body, context())
            assert list(way.check(new, body, context())) == []
            assert strategy.served(new) == body

    def test_the_row_fits_the_columns(self, group: str, name: str) -> None:
        """The name is among them, wherever it stands."""
        body = stored(name, BODIES.get((group, name)), group=group)
        strategy = kind_of(name, group).strategy

        row = strategy.cells(body, NOW)

        assert len(row) == len(strategy.columns)
        assert row[[column.name for column in strategy.columns].index("Name")] == "a"

    def test_selectable_fields_are_texts(self, group: str, name: str) -> None:
        """Also of an object in which nothing is set."""
        body = stored(name, BODIES.get((group, name)), group=group)

        assert all(isinstance(of(body), str) for of in kind_of(name, group).strategy.selectable.values())

    def test_what_is_read_shares_nothing_with_the_request(self, group: str, name: str) -> None:
        """Hooks work in place, on copies."""
        sent = {"metadata": {"name": "a", "labels": {"x": "y"}}, **deepcopy(BODIES.get((group, name), {}))}
        before = deepcopy(sent)
        strategy = kind_of(name, group).strategy

        made = strategy.decode(sent)
        strategy.default(made, context())
        strategy.prepare_create(made, context())

        assert sent == before
