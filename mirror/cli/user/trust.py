"""Which manager a user's token was sent to: its URL and authority, remembered by cluster in the user's own folder.

The address is published in a ConfigMap (``server.find``). Whoever may write that could have tokens sent to themselves:
so the first one is remembered, and another one later needs the user's word. Nothing secret is stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

import msgspec

from mirror.cli.user import printing
from mirror.cli.user.failures import Failure

_FILE = "managers.json"
_MOST_BYTES = 2**20


class Known(msgspec.Struct, frozen=True):
    """A manager."""

    url: str
    authority: str
    """SHA-256 of its PEM; of nothing for the system's authorities."""


def known(url: str, authority: bytes) -> Known:
    return Known(url, hashlib.sha256(authority).hexdigest())


def check(cluster: str, found: Known, *, accepts_change: bool) -> None:
    """Go on if this is the manager of before, or the first one.

    Args:
        cluster: whose manager it is: the management cluster and the manager's namespace there.
        found: as it is published now.
        accepts_change: the user says that another one is right.

    Raises:
        Failure: it is another one.
    """
    remembered = _read()
    before = remembered.get(cluster)
    if before == found:
        return
    if before is not None and not accepts_change:
        what = f"address changed from {before.url} to {found.url}" if before.url != found.url else "authority changed"
        raise Failure(
            f"the manager's {what} since your token was last sent there, and no token was sent: whoever can write its "
            "ConfigMap could redirect it. If an operator confirms the change, rerun with --accept-manager"
        )
    try:
        _write(remembered | {cluster: found})
    except OSError as error:
        printing.remark(f"Cannot store the manager's address ({error.strerror}): a later change will not be detected.")


def _path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.config").expanduser()) / "jobmirror" / _FILE


def _read() -> dict[str, Known]:
    """Read which managers were trusted before.

    Raises:
        Failure: it cannot be read, so that nobody gets past it by breaking it.
    """
    try:
        raw = _path().read_bytes()
        return msgspec.json.decode(raw[:_MOST_BYTES], type=dict[str, Known])
    except (FileNotFoundError, RuntimeError):  # the latter: there is no home
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        raise Failure(f"{_path()} is not readable; repair or remove it") from None


def _write(remembered: dict[str, Known]) -> None:
    """Whole or not at all; another command may write at the same time, and the last one counts."""
    try:
        path = _path()
    except RuntimeError as error:
        raise OSError(0, "there is no home directory") from error
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps(msgspec.to_builtins(remembered), indent=2, sort_keys=True) + "\n"
    number, name = tempfile.mkstemp(dir=path.parent)  # mode 0600
    try:
        with os.fdopen(number, "w") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
