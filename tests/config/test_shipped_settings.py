"""The documented settings are the real ones."""

from pathlib import Path

import msgspec
import pytest
import yaml

from mirror.settings.load import load
from mirror.settings.rules import ALLOW_NAMES
from mirror.settings.schema import Settings
from mirror.settings.section import Section

TOP = Path(__file__).parents[2]
FILE = TOP / "config" / "mirror.yaml"


def paths_of(part: type[Section], above: str = "") -> list[str]:
    """Every leaf of the settings as its path in YAML."""
    found = []
    for field in msgspec.structs.fields(part):
        path = above + field.encode_name
        below = isinstance(field.type, type) and issubclass(field.type, Section)
        found += paths_of(field.type, f"{path}.") if below else [path]
    return found


def values_of(content: dict[str, object], above: str = "") -> dict[str, object]:
    """The leaves that a file sets, by path."""
    found: dict[str, object] = {}
    for key, value in content.items():
        path = above + key
        if isinstance(value, dict) and value:
            found |= values_of(value, f"{path}.")
        else:
            found[path] = value
    return found


def test_the_shipped_file_holds_the_defaults() -> None:
    """Deleting any line of config/mirror.yaml changes nothing."""
    assert Settings() == load(FILE)


def test_the_shipped_file_holds_every_key() -> None:
    """Nothing that can be set is missing from config/mirror.yaml."""
    content = yaml.load(FILE.read_text(), Loader=yaml.CSafeLoader)

    assert sorted(paths_of(Settings)) == sorted(values_of(content))


@pytest.mark.parametrize("path", paths_of(Settings))
def test_every_key_is_documented(path: str) -> None:
    """docs/settings.md has a row for each key, by its whole path."""
    assert f"\n| `{path}` |" in (TOP / "docs" / "settings.md").read_text()


@pytest.mark.parametrize("name", ALLOW_NAMES)
def test_every_name_that_can_be_allowed_is_documented(name: str) -> None:
    """The opt-ins for kubeconfigs stand in the file's comment and in the document."""
    assert f"#   {name} " in FILE.read_text()
    assert f"\n| `{name}` |" in (TOP / "docs" / "settings.md").read_text()
