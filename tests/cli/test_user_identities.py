"""Who a user is to the manager: client certificates as kind and kubeadm have them, and what is said without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from user_fleet import NAMESPACE, UserFleet, has, user_fleet

from mirror.cli.main import main
from mirror.cli.user.cluster import client_for
from mirror.cli.user.failures import Doing
from mirror.cli.user.server import AccessEndpoint
from mirror.kube.credentials import Credentials, Endpoint, Identity
from mirror.kube.errors import Unauthorized

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserFleet]:
    """Everything, with a finished Job."""
    with user_fleet(tmp_path_factory.mktemp("fleet")) as found:
        found.create("done", "echo one")
        found.wait("done", has("Complete"))
        yield found


def mirror(kubeconfig: str, *arguments: str) -> Result:
    """One command, in this process."""
    environment = {"KUBECONFIG": kubeconfig, "MIRROR_SERVER": None, "MIRROR_TOKEN": None}
    return CliRunner().invoke(main, arguments, env=environment)


@pytest.mark.parametrize(
    "arguments",
    [
        ["logs", "done"],
        ["logs", "-f", "done"],
        ["pods", "done"],
        ["events", "done"],
        ["diff", "done"],
        ["explain", "done"],
    ],
    ids=" ".join,
)
def test_a_client_certificate_is_enough(planes: UserFleet, arguments: list[str]) -> None:
    """Every command that goes through access, with no token anywhere."""
    done = mirror(planes.certificate_kubeconfig("ann"), *arguments)

    assert (done.exit_code, done.stderr) == (0, "")
    assert "one" in done.stdout or arguments[0] != "logs"


def test_the_administrators_certificate_is_enough(planes: UserFleet) -> None:
    """Of ``system:masters``, as everybody's on a cluster of their own."""
    assert mirror(planes.kubeconfig("admin"), "logs", "done").stdout == "one\n"


def test_rights_are_those_of_the_certificates_user(planes: UserFleet) -> None:
    """Nobody else's stand in: bob may read Jobs, and no logs."""
    done = mirror(planes.certificate_kubeconfig("bob"), "logs", "done")

    assert done.exit_code == 1
    assert f"user bob cannot get pods/log in namespace {NAMESPACE}" in done.stderr


def test_a_token_that_is_given_counts_instead(planes: UserFleet) -> None:
    """Where TLS ends before the manager, no certificate reaches it."""
    done = mirror(planes.certificate_kubeconfig("bob"), "logs", "done", "--token", "token-of-ann")

    assert (done.exit_code, done.stdout) == (0, "one\n")


def test_a_kubeconfig_with_neither_is_told_what_to_do(planes: UserFleet, tmp_path: Path) -> None:
    """In one line, with a command that helps."""
    found = yaml.safe_load(Path(planes.kubeconfig("ann")).read_text())
    found["users"] = [{"name": "management", "user": {}}]
    path = tmp_path / "nobody.yaml"
    path.write_text(yaml.safe_dump(found))
    done = mirror(str(path), "logs", "done")

    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1


async def test_a_certificate_that_never_arrives_is_told_what_to_do() -> None:
    """What ends TLS in between asks for none: the manager sees nobody, and the way out is one command."""
    client = client_for("the manager", Credentials(Endpoint("https://127.0.0.1:9", None), Identity()))
    try:
        told = AccessEndpoint(client, by_certificate=True).failure(Unauthorized(401), Doing("get", "pods/log"))
    finally:
        await client.close()

    assert "the manager did not accept your client certificate (401)" in told.message
    assert '--token "$(kubectl create token NAME)"' in told.message


def test_a_certificate_of_another_authority_is_told_from_a_dead_server(planes: UserFleet, tmp_path: Path) -> None:
    """As proxies before a cluster give them: TLS refuses it, and the way out is the same command."""
    api = planes.fleet.management.plane.api
    found = planes.do(lambda: api.get("/api/v1/namespaces/jobmirror-system/configmaps/jobmirror-access"))
    authority = tmp_path / "ca.pem"
    authority.write_text(found["data"]["ca.crt"])
    kubeconfig = planes.certificate_kubeconfig("ann", is_ours=False)
    where = ("--server", planes.url, "--server-ca", str(authority), "-n", NAMESPACE)
    for command in ("pods", "logs"):
        done = mirror(kubeconfig, command, "done", *where)

        assert done.exit_code == 1
        assert "it may not accept your client certificate: use --token" in done.stderr
    assert mirror(kubeconfig, "logs", "done", *where, "--token", "token-of-ann").stdout == "one\n"
