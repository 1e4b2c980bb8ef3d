"""deploy/release.py: what the workflow `release` publishes beside what is built, and what it rejects."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

TOP = Path(__file__).parents[2]
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
URL = "https://example.org/owner/jobmirror/releases/download/v1.2.3"
CHANGELOG = """\
# Changelog

## Unreleased

- a

## 1.2.3 - 2026-12-01

### Added

- b

## 1.2.2

- c
"""


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, for version 1.2.3."""
    spec = importlib.util.spec_from_file_location("release", TOP / "deploy/release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "version", lambda: "1.2.3")
    return module


def test_a_version_with_a_dated_section_is_released(release: ModuleType) -> None:
    """The tag is the version's; without a tag, for a rehearsal, neither is asked for."""
    release.check(CHANGELOG, "v1.2.3")
    release.check("", "")


@pytest.mark.parametrize(
    ("tag", "changelog", "problem"),
    [
        ("v1.2.4", CHANGELOG, "tag v1.2.4, but pyproject.toml has version 1.2.3"),
        ("1.2.3", CHANGELOG, "tag 1.2.3"),
        ("v1.2.3", CHANGELOG.replace(" - 2026-12-01", ""), "no section `## 1.2.3 - YYYY-MM-DD`"),
        ("v1.2.3", "", "no section"),
    ],
    ids=["another version", "no v", "not dated", "no changelog"],
)
def test_what_does_not_agree_is_rejected(release: ModuleType, tag: str, changelog: str, problem: str) -> None:
    """Before anything is built."""
    with pytest.raises(release.CannotRelease, match=re.escape(problem)):
        release.check(changelog, tag)


def test_notes_are_the_versions_section(release: ModuleType) -> None:
    """Of the first, one between, and the last."""
    assert release.notes(CHANGELOG, "Unreleased") == "- a\n"
    assert release.notes(CHANGELOG, "1.2.3") == "### Added\n\n- b\n"
    assert release.notes(CHANGELOG, "1.2.2") == "- c\n"
    with pytest.raises(release.CannotRelease, match=r"1\.2\.1"):
        release.notes(CHANGELOG, "1.2.1")


def test_the_changelog_can_be_read_so(release: ModuleType) -> None:
    """The real one has a section for the version of pyproject.toml."""
    text = (TOP / "CHANGELOG.md").read_text()
    version = re.search(r'^version = "(.+)"$', (TOP / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None

    assert release.notes(text, version[1])


def test_the_published_chart_installs_the_published_image(release: ModuleType, tmp_path: Path) -> None:
    """By its digest; everything else is as in the tree."""
    chart = release.chart("registry.example/owner/jobmirror", DIGEST, tmp_path)
    ours, theirs = (yaml.safe_load((folder / "values.yaml").read_text()) for folder in (release.CHART, chart))

    assert theirs.pop("image") == {
        **ours.pop("image"),
        "repository": "registry.example/owner/jobmirror",
        "tag": f"1.2.3@{DIGEST}",
    }
    assert ours == theirs
    for file in release.CHART.rglob("*.*"):
        if file.is_file() and file.name != "values.yaml":
            assert (chart / file.relative_to(release.CHART)).read_text() == file.read_text()


@pytest.mark.parametrize("digest", ["", "1.2.3", "sha256:12", f"{DIGEST}0"])
def test_a_chart_without_a_digest_is_rejected(release: ModuleType, digest: str, tmp_path: Path) -> None:
    """An output that a workflow did not get is an empty text."""
    with pytest.raises(release.CannotRelease, match="not the digest"):
        release.chart("registry.example/owner/jobmirror", digest, tmp_path)


def test_the_manifest_is_one_that_krew_accepts(release: ModuleType, tmp_path: Path) -> None:
    """The rules of krew's own validation: version, platforms with a selector, an address, a digest and a program."""
    for name in ("linux_amd64", "darwin_arm64"):
        (tmp_path / f"kubectl-mirror_{name}.tar.gz").write_bytes(name.encode())
    (tmp_path / "jobmirror-1.2.3.tar.gz").touch()

    found = yaml.safe_load(release.krew(URL, tmp_path))

    assert (found["apiVersion"], found["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert found["metadata"] == {"name": "mirror"}
    assert re.fullmatch(r"v\d+\.\d+\.\d+", found["spec"]["version"])
    assert found["spec"]["homepage"] == "https://example.org/owner/jobmirror"
    assert len(found["spec"]["shortDescription"]) <= 50
    assert found["spec"]["platforms"] == [
        {
            "selector": {"matchLabels": {"os": system, "arch": architecture}},
            "uri": f"{URL}/kubectl-mirror_{system}_{architecture}.tar.gz",
            "sha256": hashlib.sha256(f"{system}_{architecture}".encode()).hexdigest(),
            "bin": "kubectl-mirror",
        }
        for system, architecture in (("darwin", "arm64"), ("linux", "amd64"))
    ]


def test_a_manifest_without_archives_is_rejected(release: ModuleType, tmp_path: Path) -> None:
    """Krew would reject it, after the release."""
    with pytest.raises(release.CannotRelease, match="kubectl-mirror_SYSTEM_ARCHITECTURE"):
        release.krew(URL, tmp_path)


def test_problems_are_one_line(release: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """On stderr, with exit code 1; what is printed otherwise can be used by a workflow."""
    assert release.main(["check", "v9"]) == 1
    assert capsys.readouterr() == ("", "release.py: tag v9, but pyproject.toml has version 1.2.3: change one of them\n")
    assert release.main(["check"]) == 0
    assert capsys.readouterr().out == "1.2.3\n"
    assert release.main(["chart", "--image", "i", "--digest", DIGEST, str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'jobmirror'}\n"


def test_the_readme_installs_what_a_release_publishes() -> None:
    """The chart's place, the manifest and the package are those of the workflow and of pyproject.toml."""
    readme, workflow = (TOP / "README.md").read_text(), (TOP / ".github/workflows/release.yaml").read_text()
    package = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["name"]
    chart = yaml.safe_load((TOP / "deploy/helm/jobmirror/Chart.yaml").read_text())["name"]

    assert 'helm push "$RUNNER_TEMP"/jobmirror-*.tgz "oci://$IMAGE/charts"' in workflow
    assert f"helm install {chart} oci://IMAGE/charts/{chart} " in readme
    assert 'release.py krew --url "$URL" dist >mirror.yaml' in workflow
    assert "kubectl krew install --manifest=mirror.yaml" in readme
    assert {f"pipx install {package}", f"pip install {package}"} <= set(re.findall(r"pipx? install \w+", readme))
    assert "pypa/gh-action-pypi-publish" in workflow
