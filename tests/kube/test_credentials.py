"""Identities that change: when they are asked for anew, and what happens when they do not come."""

from __future__ import annotations

import asyncio
import math
import os
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from certificates import Authority

from mirror.kube.credentials import Credentials, Endpoint, Identity, IdentityUnavailable, renewal_time
from mirror.kube.errors import Unreachable
from mirror.kube.identities import Plugin, TokenFile
from mirror.kube.kubeconfig import Cluster, ExecPlugin
from mirror.kube.tls import client_context

ENDPOINT = Endpoint("https://east.example", None)


class Wall:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Hands out what a test put there; an empty text is a failure."""

    def __init__(self, wall: Wall, *tokens: str, lasts_seconds: float = 100.0) -> None:
        self.wall = wall
        self.tokens = list(tokens)
        self.lasts_seconds = lasts_seconds
        self.asked = 0

    async def fetch(self) -> Identity:
        self.asked += 1
        await asyncio.sleep(0)
        token = self.tokens.pop(0) if self.tokens else ""
        if not token:
            raise IdentityUnavailable("the plugin failed")
        expires_at = self.wall() + self.lasts_seconds
        return Identity(f"Bearer {token}", renew_at=renewal_time(self.wall(), expires_at), expires_at=expires_at)


def made(source: Source) -> Credentials:
    nothing_yet = Identity(renew_at=-math.inf, expires_at=-math.inf)
    return Credentials(ENDPOINT, nothing_yet, source=source, wall=source.wall)


async def token(credentials: Credentials) -> str:
    return (await credentials.headers())["Authorization"].removeprefix("Bearer ")


@pytest.mark.parametrize(
    ("lasts", "renewed_after"),
    [(3600.0, 3300.0), (1000.0, 800.0), (10.0, 8.0), (-5.0, -5.0)],
    ids=["an hour: five minutes early", "minutes: a fifth early", "seconds: a fifth early", "expired already"],
)
def test_renewal_comes_before_the_end(lasts: float, renewed_after: float) -> None:
    """Five minutes, or a fifth of what is left where that is less."""
    assert renewal_time(50.0, 50.0 + lasts) == pytest.approx(50.0 + renewed_after)


async def test_headers_are_the_same_object_while_nothing_changes() -> None:
    """So that a client can keep what it built of them."""
    wall = Wall()
    source = Source(wall, "one", "two")
    credentials = made(source)
    first = await credentials.headers()
    wall.now += 79
    assert await credentials.headers() is first
    assert source.asked == 1


async def test_a_token_is_renewed_before_it_expires() -> None:
    """At four fifths of its time."""
    wall = Wall()
    credentials = made(Source(wall, "one", "two"))
    assert await token(credentials) == "one"
    wall.now += 81
    assert await token(credentials) == "two"


async def test_a_crowd_asks_the_source_once() -> None:
    """Renewing is single-flight."""
    source = Source(Wall(), "one", "two")
    credentials = made(source)
    assert set(await asyncio.gather(*(token(credentials) for _ in range(50)))) == {"one"}
    assert source.asked == 1


async def test_a_crowd_asks_a_slow_source_once() -> None:
    """Also if asking takes longer than the pause between two askings."""

    class Slow(Source):
        async def fetch(self) -> Identity:
            self.wall.now += 30
            return await super().fetch()

    source = Slow(Wall(), "one", "two")
    credentials = made(source)
    assert set(await asyncio.gather(*(token(credentials) for _ in range(50)))) == {"one"}
    used = await credentials.headers()
    assert await asyncio.gather(*(credentials.renew(used) for _ in range(9))) == [True] * 9
    assert source.asked == 2


async def test_a_failed_renewal_keeps_what_is_still_good() -> None:
    """The plugin is asked again ten seconds later, not by every request."""
    wall = Wall()
    source = Source(wall, "one", "", "two")
    credentials = made(source)
    await token(credentials)
    wall.now += 81
    assert [await token(credentials) for _ in range(10)] == ["one"] * 10
    assert source.asked == 2
    wall.now += 11
    assert await token(credentials) == "two"


async def test_without_a_good_identity_nothing_is_sent() -> None:
    """The failure's reason is told, and failing goes on quietly until it is time to ask again."""
    wall = Wall()
    source = Source(wall, "", "one")
    credentials = made(source)
    for _ in range(10):
        with pytest.raises(Unreachable, match="the plugin failed"):
            await credentials.headers()
    assert source.asked == 1
    wall.now += 11
    assert await token(credentials) == "one"


async def test_expired_tokens_are_not_sent() -> None:
    """A plugin that hands out stale tokens is asked once a second at most."""
    wall = Wall()
    source = Source(wall, "one", "two", lasts_seconds=-1.0)
    credentials = made(source)
    for _ in range(5):
        with pytest.raises(Unreachable, match="expired"):
            await credentials.headers()
    assert source.asked == 1


async def test_who_gives_up_while_renewing_leaves_it_to_the_next() -> None:
    """A cancelled request does not leave the others waiting for ever."""
    wall = Wall()
    source = Source(wall, "one", "two")
    credentials = made(source)
    impatient = asyncio.create_task(credentials.headers(), name="impatient")
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    wall.now += 2
    assert await token(credentials) in ("one", "two")


async def test_refused_headers_are_renewed_once_for_all_who_used_them() -> None:
    """Each is told to try again; another 401 right after is not worth another plugin run."""
    wall = Wall()
    source = Source(wall, "one", "two", "three")
    credentials = made(source)
    used = await credentials.headers()
    wall.now += 20
    assert await asyncio.gather(*(credentials.renew(used) for _ in range(9))) == [True] * 9
    newer = await credentials.headers()
    assert newer["Authorization"] == "Bearer two"
    assert not await credentials.renew(newer)
    assert source.asked == 2
    wall.now += 11
    assert await credentials.renew(newer)


async def test_impersonation_is_sent_beside_the_token() -> None:
    """One header per group."""
    groups = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    credentials = Credentials(ENDPOINT, Identity("Bearer one"), impersonation=groups)
    assert list((await credentials.headers()).items()) == [("Authorization", "Bearer one"), *groups]
    assert not await credentials.renew(await credentials.headers())


async def test_a_new_certificate_is_taken_and_counted() -> None:
    """Its number tells the client to connect anew; one that does not load is a failure like others."""
    authority = Authority()
    first, second = authority.issue("a"), authority.issue("b")
    pairs = [(first.certificate, first.key), (second.certificate, first.key), (second.certificate, second.key)]

    class Certificates:
        async def fetch(self) -> Identity:
            certificate, key = pairs.pop(0)
            return Identity("", certificate, key, renew_at=wall() + 50)

    wall = Wall()
    endpoint = Endpoint("https://east.example", client_context(ca_pem=authority.pem))
    stale = Identity(renew_at=-math.inf, expires_at=-math.inf)
    credentials = Credentials(endpoint, stale, source=Certificates(), wall=wall)
    generations = []
    for _ in range(3):
        await credentials.headers()
        generations.append(credentials.certificate_generation)
        wall.now += 51
    assert generations == [1, 1, 2]


# Token files


def test_a_token_file_is_read_without_its_line_end(tmp_path: Path) -> None:
    """Editors add one; headers may not have one."""
    path = tmp_path / "token"
    path.write_text("abc\n")
    wall = Wall()
    found = TokenFile(str(path), wall=wall).read()
    assert (found.authorization, found.renew_at - wall.now) == ("Bearer abc", 60.0)


async def test_a_token_file_is_read_again_every_minute(tmp_path: Path) -> None:
    """And not more often, until a 401 asks for it; when it is gone, the last token serves on."""
    path = tmp_path / "token"
    path.write_text("one")
    wall = Wall()
    source = TokenFile(str(path), wall=wall)
    credentials = Credentials(ENDPOINT, source.read(), source=source, wall=wall)
    path.write_text("two")
    assert await token(credentials) == "one"
    assert await credentials.renew(await credentials.headers())
    assert await token(credentials) == "two"
    path.write_text("three")
    wall.now += 61
    assert await token(credentials) == "three"
    path.unlink()
    wall.now += 61
    assert await token(credentials) == "three"


@pytest.mark.parametrize("content", [b"", b"\n", b"a b", b"a\nb", b"\xff", "tökén".encode()])
def test_a_token_file_of_junk_is_no_identity(tmp_path: Path, content: bytes) -> None:
    """What could not be sent is refused where it is read."""
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(IdentityUnavailable):
        TokenFile(str(path)).read()


def test_a_token_file_that_would_block_is_refused(tmp_path: Path) -> None:
    """Reading a pipe would hold up the whole manager."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "nothing", Path("/dev/zero")):
        with pytest.raises(IdentityUnavailable):
            TokenFile(str(path)).read()


# Plugins

VERSION = "client.authentication.k8s.io/v1"


def python(code: str, *, env: tuple[tuple[str, str], ...] = (), info: bool = False) -> Plugin:
    """A plugin that is this Python code; ``say(**status)`` prints a credential."""
    head = (
        "import json, os, sys, time\n"
        f"def say(version={VERSION!r}, kind='ExecCredential', **status):\n"
        "    print(json.dumps({'apiVersion': version, 'kind': kind, 'status': status}))\n"
    )
    plugin = ExecPlugin(sys.executable, ("-S", "-E", "-c", head + code), env, VERSION, info)
    return Plugin(plugin, Cluster("https://east.example", "sni.example", True, b"PEM"))


async def test_a_plugin_hands_out_a_token() -> None:
    """Its end is known, so it is renewed in time; what it says on stderr blocks nothing."""
    when = datetime(2050, 1, 1, tzinfo=UTC)
    code = f"sys.stderr.write('x' * 200_000)\nsay(token='abc', expirationTimestamp={when.isoformat()!r})"
    found = await python(code).fetch()
    assert (found.authorization, found.expires_at) == ("Bearer abc", when.timestamp())
    assert found.renew_at == pytest.approx(when.timestamp() - 300)


async def test_a_plugin_hands_out_a_certificate() -> None:
    """PEM as it is, not base64."""
    found = await python("say(clientCertificateData='C', clientKeyData='K')").fetch()
    assert (found.authorization, found.certificate_pem, found.key_pem, found.expires_at) == ("", b"C", b"K", math.inf)


async def test_a_plugin_learns_what_it_is_asked_for() -> None:
    """By the environment that the convention names, beside our own and what the kubeconfig adds; stdin is closed."""
    code = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "assert not sys.stdin.read() and os.environ['PATH']\n"
        "assert info['spec'] == {'interactive': False, 'cluster': {'server': 'https://east.example',"
        " 'tls-server-name': 'sni.example', 'certificate-authority-data': 'UEVN'}}, info\n"
        "say(token=os.environ['EXTRA'])"
    )
    assert (await python(code, env=(("EXTRA", "abc"),), info=True).fetch()).authorization == "Bearer abc"


@pytest.mark.parametrize(
    "code",
    [
        "say(token='abc'); sys.exit(3)",
        "pass",
        "print('s3cr3t')",
        "print('{}')",
        "print('[' * 100_000)",
        "say(kind='Status', token='abc')",
        "say(version='client.authentication.k8s.io/v1beta1', token='abc')",
        "say()",
        "say(token='')",
        "say(token='a b')",
        "say(token=5)",
        "say(clientCertificateData='C')",
        "say(token='abc', expirationTimestamp='soon')",
        "sys.stdout.write('s3cr3t' * 1_000_000)",
    ],
)
async def test_a_plugin_that_goes_wrong_is_no_identity(code: str) -> None:
    """What it printed is not quoted."""
    with pytest.raises(IdentityUnavailable) as caught:
        await python(code).fetch()
    assert "s3cr3t" not in str(caught.value)


async def test_a_plugin_that_is_not_there_is_no_identity() -> None:
    """Nor one that may not be run."""
    for command in ("/nowhere/plugin", "/dev/null", "no-such-plugin-anywhere"):
        with pytest.raises(IdentityUnavailable):
            await Plugin(ExecPlugin(command), Cluster("https://east.example")).fetch()


@pytest.mark.parametrize("give_up", ["by deadline", "by cancellation"])
async def test_a_plugin_that_hangs_dies_with_everything_it_started(
    tmp_path: Path, give_up: str, monkeypatch: pytest.MonkeyPatch, required_program: Callable[..., Path]
) -> None:
    """Scripts wait for other programs; none of them is left behind."""
    for program in ("mv", "sleep"):
        required_program(program)
    pid_file = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {shlex.quote(str(pid_file))}.part; mv {pid_file}.part {pid_file}; wait"
    plugin = Plugin(ExecPlugin("/bin/sh", ("-c", script)), Cluster("https://east.example"))
    if give_up == "by deadline":
        monkeypatch.setattr("mirror.kube.identities._PLUGIN_SECONDS", 0.4)
        with pytest.raises(IdentityUnavailable, match="did not end"):
            await plugin.fetch()
    else:
        task = asyncio.create_task(plugin.fetch(), name="fetch")
        await until(pid_file.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    child = int(pid_file.read_text())
    await until(lambda: not is_running(child))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def test_an_identity_s_repr_shows_no_secret() -> None:
    """Whatever is logged by accident."""
    assert "s3cr3t" not in repr(Identity("Bearer s3cr3t", b"s3cr3t", b"s3cr3t"))
