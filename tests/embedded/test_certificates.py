"""Certificates and kubeconfigs of embedded control planes: whom they name, how long, and who can read them."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from mirror.embedded import certificates, kubeconfigs, web
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.serving.x509 import Authority

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.new("test", now=NOW)


def parsed(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def test_a_client_certificate_names_a_user(authority: Authority) -> None:
    """Signed by the authority, and good from an hour ago, as clocks differ."""
    found = parsed(authority.issue_client("jane", ["dev"]).certificate)
    assert found.subject.rfc4514_string() == "CN=jane,O=dev"
    assert found.issuer == parsed(authority.certificate).subject
    assert found.not_valid_before_utc == NOW - timedelta(hours=1)
    found.verify_directly_issued_by(parsed(authority.certificate))


def test_a_serving_certificate_has_every_name(authority: Authority) -> None:
    """Of this machine, of the service, and the one that is listened on."""
    found = parsed(authority.issue_server(certificates.names_for("example.com")).certificate)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"example.com", "localhost", "kubernetes"} <= set(names.get_values_for_type(x509.DNSName))
    assert "127.0.0.1" in map(str, names.get_values_for_type(x509.IPAddress))


def test_the_authority_is_kept_with_the_data() -> None:
    """So that a kubeconfig outlives the process; other data has another."""
    storage = Storage()
    one, two = (certificates.kept_authority(storage, "test", now=NOW) for _ in range(2))
    assert one.saved == two.saved
    parsed(two.issue_client("jane").certificate).verify_directly_issued_by(parsed(one.certificate))
    assert certificates.kept_authority(Storage(), "test", now=NOW).saved != one.saved


@pytest.mark.parametrize(
    ("subject", "name", "groups"),
    [
        ([[("commonName", "jane")]], "jane", ("system:authenticated",)),
        (
            [[("organizationName", "a")], [("organizationName", "b")], [("commonName", "jane")]],
            "jane",
            ("a", "b", "system:authenticated"),
        ),
        ([[("organizationName", "a")]], None, ()),
    ],
)
def test_whom_a_certificate_names(
    subject: list[list[tuple[str, str]]], name: str | None, groups: tuple[str, ...]
) -> None:
    """Nobody without a common name."""
    found = web.user_of({"subject": subject}, b"")
    assert (found.name, found.groups) == (name, groups) if found else name is None


def test_kubeconfigs_hold_everything(authority: Authority, tmp_path: Path) -> None:
    """And are readable by their owner alone; writing again replaces."""
    path = tmp_path / "kubeconfig"
    for user in ("secret", authority.issue_client("jane")):
        text = kubeconfigs.kubeconfig("https://here:1", authority=authority.certificate, user=user, name="east")
        kubeconfigs.write(path, text)
    config = yaml.safe_load(path.read_text())
    assert config["current-context"] == config["contexts"][0]["name"] == "east"
    assert config["clusters"][0]["cluster"]["server"] == "https://here:1"
    assert {"client-certificate-data", "client-key-data"} == set(config["users"][0]["user"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path] == list(tmp_path.iterdir())


def test_a_kubeconfig_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """Not even a part of it."""
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        kubeconfigs.write(tmp_path / "taken", "text")
    assert [tmp_path / "taken"] == list(tmp_path.iterdir())
