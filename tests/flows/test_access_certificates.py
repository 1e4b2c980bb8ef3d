"""Users that are known by client certificates: the same rights as the management cluster gives them."""

from __future__ import annotations

import time

import pytest
from access_world import RULES, Got, access_world

from mirror.access.request_parsing import Asked
from mirror.access.reviews import REQUESTS_AT_ONCE_OF_ONE
from mirror.serving.client_certificates import CertificateUser

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

NEVER = time.time() + 1e6
JOB = "/v1/namespaces/default/jobs/train"


def asked(what: str, name: str, *, groups: tuple[str, ...] = (), ends: float = NEVER, token: str = "") -> Asked:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return Asked("GET", f"{JOB}{what}", headers, "10.0.0.1", CertificateUser(name, groups, ends))


async def test_a_certificate_has_its_users_rights_and_no_others() -> None:
    """``ann`` may, a stranger may not, and the refusal names user and permission: no account stands between."""
    async with access_world() as world:
        pod = await world.running()
        world.writes("east", pod, b"one\n")
        for name, code in (("ann", 200), ("stranger", 403)):
            got = Got()
            await world.access.handle(asked("/log", name), got)
            assert got.code == code or bytes(got.text).endswith(b"one\n"), name
        assert "user stranger cannot get jobs.batch train in namespace default" in got.message


async def test_organizations_are_groups() -> None:
    """As for the API server: ``system:masters`` may everything, and everybody is authenticated."""
    async with access_world() as world:
        await world.running()
        got = Got()
        await world.access.handle(asked("", "kubernetes-admin", groups=("system:masters",)), got)
        assert got.code == 200


async def test_an_expired_certificate_ends_with_its_time_on_an_open_connection() -> None:
    """TLS has looked at it when the connection began; here each request looks again."""
    async with access_world() as world:
        await world.running()
        got = Got()
        await world.access.handle(asked("", "ann", ends=time.time() - 1), got)
        assert (got.code, got.message) == (401, "the client certificate has expired")


async def test_who_sends_a_token_is_its_user() -> None:
    """A token that is refused is not made good by a certificate."""
    async with access_world() as world:
        await world.running()
        await world.allow("bob", RULES)
        for token, code in (("token-of-bob", 200), ("nobodys", 401)):
            got = Got()
            await world.access.handle(asked("", "stranger", token=token), got)
            assert got.code == code


async def test_a_certificates_user_is_bounded_as_others_are() -> None:
    """So many requests at once, and no more."""
    async with access_world() as world:
        await world.running()
        for _ in range(REQUESTS_AT_ONCE_OF_ONE):
            await world.access.handle(asked("", "ann"), Got())
        got = Got()
        await world.access.handle(asked("", "ann"), got)
        assert got.code == 429
