"""The samples of kinds that are data: one of each, which a manager that mirrors the kind takes as it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.model import names
from mirror.settings.kinds import KindEntry

SAMPLES = Path(__file__).parents[2] / "config" / "samples" / "kinds"


@pytest.mark.parametrize("name", built_in())
def test_a_sample_is_one_of_its_kind_and_ours(name: str) -> None:
    """Named like its file, with the value that makes it ours, and not suspended."""
    kind = kinds_of([KindEntry(kind=name)])[name]
    (document,) = yaml.safe_load_all((SAMPLES / f"{name.lower()}.yaml").read_text())
    found = kind.draft(msgspec.json.encode(document))
    assert document["metadata"] == {"name": name.lower()}
    assert kind.managed_by(found) == (kind.managed_by_value or names.DEFAULT_MANAGED_BY)
    assert not kind.is_suspended(found)


def test_there_are_samples_of_these_kinds_only() -> None:
    """Nothing is left of one that is not built in any more."""
    assert {path.stem for path in SAMPLES.glob("*.yaml")} == {name.lower() for name in built_in()}
