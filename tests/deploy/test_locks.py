"""What is installed is bound by hashes: `make .venv/.installed` and the image take no file that was not locked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
IMAGE = TOP / "deploy" / "image"
KREW = TOP / "deploy" / "krew"
IMAGE_LOCKS = tuple(sorted(IMAGE.glob("requirements-*.txt")))
E2E = (TOP / "e2e/controlplane/requirements-go.txt", TOP / "e2e/requirements-axe.txt")
LOCKS = (TOP / "constraints.txt", *IMAGE_LOCKS, *E2E, KREW / "requirements.txt")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def entries(lock: Path) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of each package."""
    text = lock.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = {}
    for line in lines:
        requirement = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line)
        assert requirement, f"{lock.name}: not pinned: {line[:80]}"
        found[requirement[1].lower()] = requirement[2], _HASH.findall(line)
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_is_pinned_with_the_hashes_of_its_files(lock: Path) -> None:
    """pip's --require-hashes refuses a file without one; what is compiled has a file for each machine and Python."""
    found = entries(lock)
    assert found
    assert not [name for name, (_, hashes) in found.items() if not hashes]
    for name in {"aiohttp", "cryptography", "msgspec", "pyyaml"} & found.keys():
        assert len(found[name][1]) >= 10, name


def test_locks_of_the_image_have_what_was_tested() -> None:
    """The same versions and hashes, and the extras by which the Dockerfile names them."""
    tested = entries(TOP / "constraints.txt")
    for lock in IMAGE_LOCKS:
        assert {name: tested.get(name) for name in entries(lock)} == entries(lock), lock.name
    assert {"requirements-speed.txt", "requirements-speed,otel.txt", "requirements-build.txt"} == {
        lock.name for lock in IMAGE_LOCKS
    }


def test_the_plugin_is_built_of_what_was_tested() -> None:
    """All that the package needs, in the same versions; beside it, only what builds it."""
    tested, built = entries(TOP / "constraints.txt"), entries(KREW / "requirements.txt")
    ours = [name for name in built if name in tested]
    assert {name: tested[name] for name in ours} == {name: built[name] for name in ours}
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    assert {re.split(r"[<>=]", one, maxsplit=1)[0] for one in project["dependencies"]} <= set(ours)


def test_everything_that_the_project_names_is_locked() -> None:
    """`make lock` was run after the last change of pyproject.toml."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    tables = project["project"]
    wanted = [*tables["dependencies"], *project["build-system"]["requires"]]
    wanted += [one for extra in tables["optional-dependencies"].values() for one in extra]
    names = {re.split(r"[<>=!~;\[ ]", one, maxsplit=1)[0].lower() for one in wanted}
    assert names <= entries(TOP / "constraints.txt").keys()


def test_nothing_is_installed_without_hashes() -> None:
    """In the Makefile, in the image and the plugin, for Go and for axe-core: each other install fetches nothing."""
    for file in (TOP / "Makefile", IMAGE / "install.sh", KREW / "build.sh"):
        text = file.read_text().replace("\\\n", " ")
        lines = [line for line in text.splitlines() if re.search(r"pip.* install ", line)]
        assert lines
        assert all("--require-hashes" in line or "--no-deps" in line for line in lines), file.name
    for file in (TOP / "e2e/controlplane/toolchain.py", TOP / "e2e/axe.py"):
        text = file.read_text()
        assert text.count('"-m", "pip"') == text.count('"--require-hashes"') == 1, file.name
    dockerfile = (IMAGE / "Dockerfile").read_text()
    assert "deploy/image/install.sh" in dockerfile
