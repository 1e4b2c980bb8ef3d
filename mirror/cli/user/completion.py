"""``mirror completion``: what a shell has to read to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
COMPLETE_VARIABLE = "_MIRROR_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    bash: `source <(mirror completion bash)` in ~/.bashrc. zsh: the same with zsh in ~/.zshrc. fish: `mirror completion
    fish > ~/.config/fish/completions/mirror.fish`. `kubectl mirror` needs only kubectl's own completion.
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "mirror", COMPLETE_VARIABLE).source())
