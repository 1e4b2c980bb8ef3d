"""Completion of a shell: the script that it reads, and what is offered after TAB (contexts, namespaces, names of Jobs).

What is offered is looked up while somebody types: it is quick, or nothing, and never an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

if TYPE_CHECKING:
    from mirror.cli.user.options import Where
    from mirror.kube.requests import Request

SHELLS = ("bash", "zsh", "fish")
COMPLETE_VARIABLE = "_MIRROR_COMPLETE"
PATIENCE_SECONDS = 2.0
MOST = 200


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


def context_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Contexts of the kubeconfig that begin so."""
    import os

    from mirror.cli.user import kubeconfig

    with contextlib.suppress(kubeconfig.NoKubeconfig):
        files = kubeconfig.paths(ctx.params.get("kubeconfig") or "", os.environ)
        found = kubeconfig.read(files, "", must_exist=False)
        return [name for name in (found.contexts if found else ()) if name.startswith(incomplete)]
    return []


def namespace_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Namespaces that begin so."""
    from mirror.kube import requests
    from mirror.kube.resources import NAMESPACES

    return _names(ctx, lambda _: requests.list_page(NAMESPACES, limit=MOST), incomplete)


def job_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Jobs of the namespace that begin so; after ``KIND/`` or ``KIND`` objects of that kind; and the kinds."""
    from mirror.cli.user.naming import kind_named, kinds
    from mirror.kinds.registry import UnknownKind
    from mirror.kube import requests

    _learn(ctx)
    taken = ctx.params.get(param.name or "") or ()
    word, slash, begun = incomplete.rpartition("/")
    kind = kinds().default
    if slash:
        try:
            kind = kind_named(word)
        except click.UsageError:
            return []
    elif taken:
        with contextlib.suppress(UnknownKind):
            kind = kinds().named(taken[0])
    resource = kind.resource
    found = _names(ctx, lambda namespace: requests.list_page(resource, namespace=namespace, limit=MOST), begun)
    others = (
        [] if slash or kind is not kinds().default else [f"{one.name.lower()}/" for one in kinds() if one is not kind]
    )
    offered = [*(word + slash + name for name in found), *(one for one in others if one.startswith(incomplete))]
    return [name for name in offered if name not in taken]


def kind_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Kinds that begin so."""
    from mirror.cli.user.naming import kinds

    _learn(ctx)
    return [kind.name.lower() for kind in kinds() if kind.name.lower().startswith(incomplete.lower())]


def _learn(ctx: click.Context) -> None:
    """Know the kinds, if that is to be had quickly."""
    import asyncio

    from mirror.cli.user import cluster, naming
    from mirror.cli.user.learning import kinds_of_manager
    from mirror.cli.user.options import MANAGER_NAMESPACE
    from mirror.kinds.registry import Kinds

    async def ask() -> Kinds:
        async with asyncio.timeout(PATIENCE_SECONDS), cluster.management(_where(ctx)) as found:
            return await kinds_of_manager(found, ctx.params.get("manager_namespace") or MANAGER_NAMESPACE)

    with contextlib.suppress(TimeoutError, OSError, click.ClickException):
        naming.know(asyncio.run(ask()))


def _where(ctx: click.Context) -> Where:
    from mirror.cli.user.options import Where

    kubeconfig, context, namespace = (ctx.params.get(name) or "" for name in ("kubeconfig", "context", "namespace"))
    return Where(kubeconfig=kubeconfig, context=context, namespace=namespace)


def _names(ctx: click.Context, request: Callable[[str], Request], incomplete: str) -> list[str]:
    """Names of a list that begin so; none when that takes too long or may not be asked."""
    import asyncio

    from mirror.batch import views
    from mirror.cli.user import cluster
    from mirror.kube.errors import KubeError

    async def ask() -> list[str]:
        async with asyncio.timeout(PATIENCE_SECONDS), cluster.management(_where(ctx)) as found:
            body = await found.client.send(request(found.namespace))
        listed = views.items(cluster.decode(body, found.name, dict).get("items"))
        metadata = (views.mapping(views.mapping(item).get("metadata")) for item in listed)
        return [name for name in (views.text(one.get("name")) for one in metadata) if name.startswith(incomplete)]

    with contextlib.suppress(KubeError, TimeoutError, OSError, click.ClickException):
        return asyncio.run(ask())
    return []
