"""``kubectl mirror``: kubectl runs ``kubectl-mirror`` for it, and ``kubectl_complete-mirror`` to complete it."""

from __future__ import annotations

import sys

from click.shell_completion import ShellComplete

from mirror.cli.main import main as mirror

NAME = "kubectl mirror"
NO_FILES = 4
"""Cobra's directive: do not offer files where we offer nothing."""
FILES = 0


def main() -> None:
    """The same commands under kubectl's name."""
    mirror(prog_name=NAME)


def complete() -> None:
    """Print what may stand at the end of our arguments, as kubectl's own commands tell it: a line each, a directive."""
    *before, incomplete = sys.argv[1:] or [""]
    offered = ShellComplete(mirror, {}, NAME, "").get_completions(before, incomplete)
    for item in offered:
        if item.type == "plain":
            print(f"{item.value}\t{item.help}" if item.help else item.value)
    print(f":{FILES if any(item.type == 'file' for item in offered) else NO_FILES}")
