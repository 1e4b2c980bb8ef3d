"""What is due of certificates that we make ourselves, over the years."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from mirror.serving import renewing
from mirror.serving.renewing import Kept
from mirror.serving.x509 import KeyPair, server_context

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAMES = ("jobmirror.jobmirror-system.svc", "127.0.0.1")
NEW = renewing.renewed(Kept(), NAMES, NOW)


def certificate(pair: KeyPair | None) -> x509.Certificate:
    assert pair is not None
    return x509.load_pem_x509_certificate(pair.certificate)


def names_of(kept: Kept) -> set[str]:
    found = certificate(kept.serving).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in found}


def test_from_nothing_there_is_everything() -> None:
    """One authority, and a certificate of it with every name."""
    assert len(NEW.authorities) == 1
    assert names_of(NEW) == set(NAMES)
    certificate(NEW.serving).verify_directly_issued_by(certificate(NEW.authorities[0]))
    assert NEW.serving is not None
    assert server_context(NEW.serving).minimum_version == ssl.TLSVersion.TLSv1_2


def test_what_is_written_is_read_again() -> None:
    """Whatever stands around it."""
    data = renewing.written(NEW)
    assert renewing.read(data) == NEW
    assert renewing.read({**data, "ca.crt": b"# ours\n" + data["ca.crt"], "other": b"\xff"}) == NEW


@pytest.mark.parametrize(("days", "is_due"), [(0, False), (59, False), (61, True), (89, True), (91, True)])
def test_a_certificate_is_renewed_after_two_thirds_of_its_life(days: int, is_due: bool) -> None:
    """Ninety days; the authority stays."""
    later = renewing.renewed(NEW, NAMES, NOW + timedelta(days=days))
    assert (later is not NEW) == is_due
    assert later.authorities == NEW.authorities


def test_names_are_added_and_never_taken_away() -> None:
    """A replica with older settings finds nothing to do in what a newer one made."""
    more = renewing.renewed(NEW, (*NAMES, "jobs.example.com"), NOW)
    assert names_of(more) == {*NAMES, "jobs.example.com"}
    assert renewing.renewed(more, NAMES, NOW) is more


def test_a_new_authority_is_trusted_before_it_signs() -> None:
    """Both are in the bundle for a day; then the new one signs; a week later the old one goes."""
    due = NOW + timedelta(days=3650 * 2 / 3 + 1)
    fresh = renewing.renewed(NEW, NAMES, due - timedelta(days=30))
    both = renewing.renewed(fresh, NAMES, due)
    assert both.authorities[1:] == NEW.authorities
    assert both.serving == fresh.serving
    assert renewing.renewed(both, NAMES, due + timedelta(hours=23)) is both
    signed = renewing.renewed(both, NAMES, due + timedelta(hours=25))
    certificate(signed.serving).verify_directly_issued_by(certificate(both.authorities[0]))
    assert signed.authorities == both.authorities
    assert renewing.renewed(signed, NAMES, due + timedelta(days=9)).authorities == both.authorities[:1]


@pytest.mark.parametrize("key", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("junk", [b"", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_broken_parts_are_made_anew(key: str, junk: bytes) -> None:
    """A Secret that somebody spoiled mends itself."""
    spoiled = renewing.read({**renewing.written(NEW), key: junk})
    mended = renewing.renewed(spoiled, NAMES, NOW)
    assert mended is not spoiled
    certificate(mended.serving).verify_directly_issued_by(certificate(mended.authorities[0]))
    assert (mended.authorities == NEW.authorities) == key.startswith("tls")


def test_a_key_of_another_certificate_counts_for_nothing() -> None:
    """It could not be served with."""
    other = renewing.written(renewing.renewed(Kept(), NAMES, NOW))
    assert renewing.read({**renewing.written(NEW), "tls.key": other["tls.key"]}).serving is None


def test_a_certificate_from_the_future_is_replaced() -> None:
    """The clock went wrong once; clients would refuse it."""
    made = renewing.renewed(Kept(), NAMES, NOW + timedelta(days=400))
    now = renewing.renewed(made, NAMES, NOW)
    assert certificate(now.serving).not_valid_before_utc < NOW
