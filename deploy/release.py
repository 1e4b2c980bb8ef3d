#!/usr/bin/env python3
"""What a release needs beside what is built: checks, notes, the chart as it is published, the manifest for krew.

    python deploy/release.py check [TAG]                       the version is the same everywhere, and it is TAG's
    python deploy/release.py notes                             the version's section of CHANGELOG.md
    python deploy/release.py chart --image NAME --digest D DIR the chart in DIR, with this image
    python deploy/release.py krew --url URL DIR                the manifest for the archives in DIR, which URL serves

The workflow `release` runs it (CONTRIBUTING.md: Releasing). Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
CHART = TOP / "deploy/helm/jobmirror"
_ARCHIVE = re.compile(r"kubectl-mirror_(linux|darwin)_(amd64|arm64)\.tar\.gz")
_SECTION = re.compile(r"(?ms)^## (\S+)(?: - (\d{4}-\d\d-\d\d))?\n(.*?)(?=^## |\Z)")
_MANIFEST = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: mirror
spec:
  version: v{version}
  homepage: {homepage}
  shortDescription: Follow Jobs that run on worker clusters
  description: |
    Shows where the Jobs of jobmirror run and why, and their logs, pods and
    events on the worker, with your own permissions on the management cluster.
  caveats: |
    logs, pods and events need a manager that serves users: docs/access.md.
  platforms:
"""
_PLATFORM = """\
  - selector:
      matchLabels:
        os: {system}
        arch: {architecture}
    uri: {url}/{name}
    sha256: {digest}
    bin: kubectl-mirror
"""


class CannotRelease(Exception):
    """What is wrong, and what to do."""


def version() -> str:
    """That of pyproject.toml."""
    return str(tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"])


def check(changelog: str, tag: str = "") -> None:
    """A tag is the version's, and the changelog has a dated section for it.

    Raises:
        CannotRelease: it is not so.
    """
    if not tag:
        return
    if tag != f"v{version()}":
        raise CannotRelease(f"tag {tag}, but pyproject.toml has version {version()}: change one of them")
    if version() not in {name for name, date, _ in _SECTION.findall(changelog) if date}:
        raise CannotRelease(f"CHANGELOG.md has no section `## {version()} - YYYY-MM-DD`: rename Unreleased")


def notes(changelog: str, released: str) -> str:
    """The section of a version, without its heading.

    Raises:
        CannotRelease: there is none.
    """
    for name, _, text in _SECTION.findall(changelog):
        if name == released:
            return f"{text.strip()}\n"
    raise CannotRelease(f"CHANGELOG.md has no section for {released}")


def chart(image: str, digest: str, folder: Path) -> Path:
    """A copy of the chart that installs this image, whatever its tag becomes.

    Raises:
        CannotRelease: the digest is none, or the chart's values have no place for them.
    """
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise CannotRelease(f"{digest!r} is not the digest of an image")
    copy = folder / CHART.name
    shutil.copytree(CHART, copy)
    text = (copy / "values.yaml").read_text()
    for old, new in (("repository: jobmirror", f"repository: {image}"), ('tag: ""', f"tag: {version()}@{digest}")):
        if text.count(f"  {old}\n") != 1:
            raise CannotRelease(f"values.yaml of the chart does not have {old!r} once")
        text = text.replace(f"  {old}\n", f"  {new}\n")
    (copy / "values.yaml").write_text(text)
    return copy


def krew(url: str, folder: Path) -> str:
    """The manifest of the plugin, for each archive in the folder.

    Raises:
        CannotRelease: there is none.
    """
    archives = sorted(file for file in folder.iterdir() if _ARCHIVE.fullmatch(file.name))
    if not archives:
        raise CannotRelease(f"no kubectl-mirror_SYSTEM_ARCHITECTURE.tar.gz in {folder}")
    text = _MANIFEST.format(version=version(), homepage=url.partition("/releases/")[0])
    for file in archives:
        found = _ARCHIVE.fullmatch(file.name)
        assert found is not None
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        text += _PLATFORM.format(system=found[1], architecture=found[2], url=url, name=file.name, digest=digest)
    return text


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked; the exit code is 1 if it cannot be released so."""
    options = _arguments(arguments)
    changelog = (TOP / "CHANGELOG.md").read_text()
    try:
        match options.command:
            case "check":
                check(changelog, options.tag)
                print(version())
            case "notes":
                print(notes(changelog, version()), end="")
            case "chart":
                print(chart(options.image, options.digest, options.folder))
            case "krew":
                print(krew(options.url, options.folder), end="")
    except CannotRelease as problem:
        print(f"release.py: {problem}", file=sys.stderr)
        return 1
    return 0


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check").add_argument("tag", nargs="?", default="")
    commands.add_parser("notes")
    for name, needed in (("chart", ("--image", "--digest")), ("krew", ("--url",))):
        command = commands.add_parser(name)
        for option in needed:
            command.add_argument(option, required=True)
        command.add_argument("folder", type=Path, metavar="DIR")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
