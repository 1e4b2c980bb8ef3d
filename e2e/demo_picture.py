"""``python -m e2e.demo_picture FILE``: ``mirror demo`` in a terminal of 80 columns, as an animated SVG."""

from __future__ import annotations

import codecs
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

from e2e.controlplane.process import installed_mirror
from e2e.terminal import Frame, Screen, film

COLUMNS, ROWS = 80, 32
_FRAME_SECONDS = 0.3
"""Between two frames: what is shorter is not seen."""
_STILL_SECONDS = 6.0
_PIECE_BYTES = 65_536


def record() -> list[Frame]:
    """Its frames, without those that repeat the one before."""
    owner, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
    playing = subprocess.Popen([installed_mirror(), "demo"], stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    screen, decode, began = Screen(COLUMNS, ROWS), codecs.getincrementaldecoder("utf-8")(), time.monotonic()
    frames = [Frame(0.0, ())]
    try:
        while piece := _read(owner):
            screen.write(decode.decode(piece).replace("\r\n", "\n"))
            at, lines = time.monotonic() - began, screen.shown()
            if lines != frames[-1].lines:
                if frames[-1].at and at - frames[-1].at < _FRAME_SECONDS:
                    frames[-1] = Frame(frames[-1].at, lines)
                else:
                    frames.append(Frame(at, lines))
    finally:
        os.close(owner)
        code = playing.wait()
    if code:
        raise SystemExit(f"mirror demo ended with {code}")
    return frames


def _read(owner: int) -> bytes:
    """What was printed next; nothing at the end."""
    try:
        return os.read(owner, _PIECE_BYTES)
    except OSError:  # Linux: the other side is closed
        return b""


if __name__ == "__main__":
    drawn = film(record(), columns=COLUMNS, rows=ROWS, still_seconds=_STILL_SECONDS, title="mirror demo")
    Path(sys.argv[1]).write_text(drawn)
