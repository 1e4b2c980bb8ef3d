"""A user's token goes to the manager of before, or to where the user says (mirror/cli/user/trust.py)."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from mirror.cli.user import trust
from mirror.cli.user.failures import Failure

HERE, THERE = "https://management jobmirror-system", "https://other jobmirror-system"
ONE = trust.known("https://one", b"authority")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "jobmirror"


def check(found: trust.Known, *, cluster: str = HERE, accepts_change: bool = False) -> None:
    trust.check(cluster, found, accepts_change=accepts_change)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (trust.known("https://evil", b"authority"), "address changed from https://one to https://evil"),
        (trust.known("https://one", b"another"), "authority changed"),
        (trust.known("https://one", b""), "authority changed"),
    ],
)
def test_another_manager_gets_no_token_unless_the_user_says_so(other: trust.Known, what: str) -> None:
    """Whoever may write the ConfigMap decides where it leads, and must not decide who gets tokens."""
    check(ONE)
    check(ONE)
    for _ in range(2):
        with pytest.raises(Failure, match=f"{what}.*--accept-manager"):
            check(other)
    check(other, accepts_change=True)
    check(other)
    with pytest.raises(Failure):
        check(ONE)


def test_each_cluster_has_its_own() -> None:
    """Contexts of one kubeconfig lead to several."""
    check(ONE)
    check(trust.known("https://two", b""), cluster=THERE)
    check(ONE)


def test_only_the_user_can_write_it(folder: Path) -> None:
    """Else somebody else on the machine says whom to trust."""
    check(ONE)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "managers.json").stat().st_mode) == 0o600


def test_what_cannot_be_read_is_not_taken_for_nothing(folder: Path) -> None:
    """A broken file is no first time."""
    check(ONE)
    (folder / "managers.json").write_text("{")
    with pytest.raises(Failure, match="repair or remove it"):
        check(ONE)


def test_where_nothing_can_be_written_the_user_is_warned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in a container without a home; the command goes on."""
    folder.write_text("in the way")
    with pytest.raises(Failure):
        check(ONE)
    folder.unlink()
    folder.symlink_to("/proc/nothing")
    check(ONE)
    assert "Cannot store the manager's address" in capsys.readouterr().err
