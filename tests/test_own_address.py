"""Where other managers ask this one (``http_services``), and what they have to show to be asked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mirror.access.peers import Trust
from mirror.http_services import OwnAddress
from mirror.serving.certificates import Certificates, Material
from mirror.serving.x509 import Authority
from mirror.settings.schema import Settings, Sharding
from mirror.telemetry.logs import get_log

AUTHORITY = Authority.new("ours", now=datetime.now(UTC))


class Fixed:
    """A source of one certificate, for these names."""

    every_seconds = 3600.0

    def __init__(self, *names: str) -> None:
        self.material = Material(AUTHORITY.issue_server(names), AUTHORITY.certificate)

    async def look(self) -> Material:
        return self.material


def test_it_is_the_pods_and_nothing_before_its_port_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_IP", "10.0.0.7")
    at = OwnAddress(Settings())
    assert (at.text(), at.is_known) == ("", True)
    at.port = 8443
    assert at.text() == "10.0.0.7:8443"


def test_the_setting_goes_before_the_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_IP", "10.0.0.7")
    at = OwnAddress(Settings(sharding=Sharding(address="fd00::7")))
    at.port = 8443
    assert at.text() == "[fd00::7]:8443"


def test_without_either_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_IP", raising=False)
    at = OwnAddress(Settings())
    at.port = 8443
    assert (at.text(), at.is_known) == ("", False)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("jobmirror.x.svc", "jobmirror-webhook.x.svc"), "jobmirror.x.svc"),
        (("*.example.com",), "manager.example.com"),
        (("10.0.0.7",), "10.0.0.7"),
    ],
)
async def test_others_show_the_same_certificate_as_we(names: tuple[str, ...], shown: str) -> None:
    at, certificates = OwnAddress(Settings()), Certificates(Fixed(*names), log=get_log("test"))
    assert at.trust() == Trust(b"", "")
    await certificates.load()
    at.certificates = certificates
    assert at.trust() == Trust(AUTHORITY.certificate, shown)
