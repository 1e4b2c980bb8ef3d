"""The HTTPS address, over real loopback sockets: whom clients meet, and that a new certificate needs no restart."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from mirror.model.endings import CannotStart
from mirror.serving import https
from mirror.serving.certificates import Certificates, Files, Material, Unusable
from mirror.serving.x509 import Authority, KeyPair, client_context, server_context
from mirror.telemetry.logs import get_log

ANY_PORT = ("127.0.0.1", 0)
ONE, OTHER = (Authority.new(name, now=datetime.now(UTC)) for name in ("one", "other"))


class Changing:
    """A source whose content a test sets."""

    every_seconds = 0.0

    def __init__(self) -> None:
        self.material: Material | Unusable = signed_by(ONE)
        self.looks = asyncio.Semaphore(0)

    async def look(self) -> Material:
        self.looks.release()
        if isinstance(self.material, Unusable):
            raise self.material
        return self.material


def signed_by(authority: Authority) -> Material:
    return Material(authority.issue_server(["127.0.0.1"]), authority.certificate)


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


@asynccontextmanager
async def serving(source: Changing) -> AsyncIterator[int]:
    certificates = Certificates(source, log=get_log("test"))
    await certificates.load()
    app = https.application([web.get("/", hello), web.post("/", hello)])
    async with asyncio.TaskGroup() as scope, https.serve_https(ANY_PORT, app, certificates) as port:
        keeping = scope.create_task(certificates.keep(), name="keep")
        yield port
        keeping.cancel()


async def get(port: int, authority: Authority, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Over a connection of its own."""
    tls = client_context(authority.certificate)
    url = f"https://127.0.0.1:{port}/"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=tls, headers=headers) as answer:
        return answer.status, await answer.text()


async def looked(source: Changing) -> None:
    """Whatever was set before has been seen and used by now: the second look begins after the first was used."""
    for _ in range(3):
        await source.looks.acquire()


async def test_new_connections_get_the_new_certificate() -> None:
    """Without a restart; one that is open goes on."""
    source = Changing()
    async with serving(source) as port, aiohttp.ClientSession() as old:
        url, tls = f"https://127.0.0.1:{port}/", client_context(ONE.certificate)
        assert (await old.get(url, ssl=tls)).status == 200
        source.material = signed_by(OTHER)
        source.looks = asyncio.Semaphore(0)
        await looked(source)
        assert await get(port, OTHER) == (200, "hello")
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(port, ONE)
        assert (await old.get(url, ssl=tls)).status == 200


def self_signed(key: rsa.RSAPrivateKey) -> Material:
    """As an operator makes one by hand, with another kind of key than ours."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "by hand")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    form, no = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = signed.public_bytes(serialization.Encoding.PEM)
    return Material(KeyPair(pem, key.private_bytes(serialization.Encoding.PEM, form, no)), pem)


async def test_another_kind_of_key_takes_over_too() -> None:
    """OpenSSL keeps one pair for each kind of key in a context, and would go on showing the old one."""
    source, by_hand = Changing(), self_signed(rsa.generate_private_key(65537, 2048))
    async with serving(source) as port:
        source.material = by_hand
        source.looks = asyncio.Semaphore(0)
        await looked(source)
        shown = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
        assert shown.encode() == by_hand.authority
        source.material = signed_by(OTHER)
        source.looks = asyncio.Semaphore(0)
        await looked(source)
        assert await get(port, OTHER) == (200, "hello")


@pytest.mark.parametrize(
    "broken",
    [
        Unusable("gone"),
        Material(KeyPair(b"no PEM", b"no PEM")),
        Material(KeyPair(OTHER.issue_server(["127.0.0.1"]).certificate, ONE.issue_server(["x"]).key)),
    ],
)
async def test_a_broken_pair_is_not_taken(broken: Material | Unusable) -> None:
    """What was served before goes on, and a whole one is taken afterwards."""
    source = Changing()
    async with serving(source) as port:
        source.material = broken
        source.looks = asyncio.Semaphore(0)
        await looked(source)
        assert await get(port, ONE) == (200, "hello")
        source.material = signed_by(OTHER)
        source.looks = asyncio.Semaphore(0)
        await looked(source)
        assert await get(port, OTHER) == (200, "hello")


async def test_who_speaks_no_tls_is_not_served() -> None:
    """And nobody else is troubled; TLS 1.2 is the least."""
    async with serving(Changing()) as port:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(f"http://127.0.0.1:{port}/")
        assert await get(port, ONE) == (200, "hello")
    assert server_context(ONE.issue_server(["x"])).minimum_version == ssl.TLSVersion.TLSv1_2


async def test_headers_are_bounded() -> None:
    """Nobody fills our memory."""
    async with serving(Changing()) as port:
        assert (await get(port, ONE, {"x-long": "x" * 20_000}))[0] == 400
        assert await get(port, ONE) == (200, "hello")


async def test_an_address_that_is_taken_names_the_setting() -> None:
    """In one line for the operator."""
    source = Changing()
    certificates = Certificates(source, log=get_log("test"))
    await certificates.load()
    async with serving(source) as port:
        with pytest.raises(CannotStart, match=r"cannot listen on 127.0.0.1:\d+ \(setting https.listen\): address"):
            async with https.serve_https(("127.0.0.1", port), https.application(), certificates):
                pass


async def test_files_are_read_anew(tmp_path: Path) -> None:
    """With the authority beside them, where cert-manager put one."""
    pair = ONE.issue_server(["127.0.0.1"])
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    files = Files(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    assert await files.look() == Material(pair)
    (tmp_path / "ca.crt").write_bytes(ONE.certificate)
    assert await files.look() == Material(pair, ONE.certificate)
    (tmp_path / "tls.key").unlink()
    with pytest.raises(Unusable, match=r"tls\.key: no such file"):
        await files.look()
    (tmp_path / "tls.key").write_bytes(pair.key)
    (tmp_path / "tls.crt").write_bytes(b"nothing")
    with pytest.raises(Unusable, match="holds no certificate"):
        await files.look()
