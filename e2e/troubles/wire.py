"""What stands between the manager and a worker: names, certificates, proxies. No control plane is behind them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import SSLContext

from aiohttp import web

from e2e.controlplane.kubeconfigs import write_kubeconfig
from e2e.jobs import until
from e2e.manager import ManagerProcess
from e2e.troubles.stage import JOB, Play, Sight, over, says
from mirror.model import names
from mirror.serving.x509 import Authority, server_context

_PAGE = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
_SOME_DAYS = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class _Server:
    """How a worker's server presents itself; it answers everything as a proxy without a backend does."""

    name: str = "127.0.0.1"
    """In its certificate."""
    is_expired: bool = False
    is_known: bool = True
    """Whether the kubeconfig has its authority."""


_SERVERS = {
    "behind-proxy": _Server(),
    "expired": _Server(is_expired=True),
    "other-authority": _Server(is_known=False),
    "other-name": _Server(name="worker.example.com"),
}


@dataclass(frozen=True, slots=True)
class Reached:
    """A worker that is reached, or not: where, and the authority that its kubeconfig names."""

    address: str
    authority: bytes


async def serve_all(stack: AsyncExitStack) -> Mapping[str, Reached]:
    """By name, workers whose servers are not what they should be, and one without a server.

    Entered before the manager is: a server that ends under its clients never closes a connection whose TLS handshake it
    was still in.
    """
    now = datetime.now(UTC)
    someone = Authority.new("someone", now=now).certificate
    reached = {"unresolved": Reached("https://no-such-host.invalid:6443", someone)}
    for name, server in _SERVERS.items():
        authority = Authority.new(name, now=now - _SOME_DAYS)
        valid = _SOME_DAYS / 2 if server.is_expired else 2 * _SOME_DAYS
        tls = server_context(authority.issue_server([server.name], valid=valid))
        reached[name] = Reached(await _serve(stack, tls), authority.certificate if server.is_known else someone)
    return reached


async def register_all(manager: ManagerProcess, directory: Path, reached: Mapping[str, Reached]) -> None:
    """Declare them."""
    for name, worker in reached.items():
        path = write_kubeconfig(directory / f"{name}.kubeconfig", worker.address, worker.authority, "a-token")
        await manager.register(name, kubeconfig=path.read_bytes())


async def _serve(stack: AsyncExitStack, tls: SSLContext) -> str:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=502, text=_PAGE, content_type="text/html")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    return f"https://127.0.0.1:{runner.addresses[0][1]}"


async def _ask_for(play: Play, worker: str, because: str) -> None:
    """A Job for a worker of which the manager has found out why it is unreachable: events are sent only once."""
    manager, line = play.stage.manager, f" worker={worker} state=Lost "

    async def known() -> list[str]:
        return [one for one in manager.log_lines() if line in one]

    await until(known, lambda found: found and because in found[-1], describe=lambda: _last(known))
    await play.create(play.job(annotations={"worker-selector": f"name={worker}"}))


async def _last(known: Callable[[], Awaitable[list[str]]]) -> str:
    return "\n".join((await known())[-1:])


async def _take_another(play: Play) -> None:
    await play.scene.patch(JOB, {"metadata": {"annotations": {names.WORKER_SELECTOR: "region=eu"}}})


async def name_unresolved(play: Play) -> AsyncGenerator[Sight, None]:
    await _ask_for(play, "unresolved", "no such host (DNS)")
    yield Sight("The name of a worker's server does not resolve", says("WorkersUnreachable", "no such host (DNS)"))
    await _take_another(play)
    yield over()


async def certificate_of_another_name(play: Play) -> AsyncGenerator[Sight, None]:
    await _ask_for(play, "other-name", "certificate is not valid for")
    yield Sight(
        "A worker's certificate is for another name", says("WorkersUnreachable", "certificate is not valid for")
    )
    await _take_another(play)
    yield over()


async def certificate_of_another_authority(play: Play) -> AsyncGenerator[Sight, None]:
    await _ask_for(play, "other-authority", "unknown authority")
    yield Sight("A worker's certificate is of another authority", says("WorkersUnreachable", "unknown authority"))
    await _take_another(play)
    yield over()


async def certificate_expired(play: Play) -> AsyncGenerator[Sight, None]:
    await _ask_for(play, "expired", "certificate has expired")
    yield Sight("A worker's certificate has expired", says("WorkersUnreachable", "certificate has expired"))
    await _take_another(play)
    yield over()


async def proxy_answers(play: Play) -> AsyncGenerator[Sight, None]:
    await _ask_for(play, "behind-proxy", "502")
    yield Sight("A proxy answers in a worker's place", says("WorkersUnreachable", "502", "proxy"))
    await _take_another(play)
    yield over()


STORIES = (
    name_unresolved, certificate_of_another_name, certificate_of_another_authority, certificate_expired, proxy_answers
)  # fmt: skip
