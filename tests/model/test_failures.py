"""Failures of the system in words, where real sockets cannot make them: by their numbers and names."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import pytest

from mirror.model.failures import failure_words, file_words


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] {reason.lower()} (_ssl.c:1006)")
    error.reason = reason
    return error


def verify_error(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, f"[SSL: CERTIFICATE_VERIFY_FAILED] {message} (_ssl.c:1006)")
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ECONNRESET, "Connection reset by peer"), "connection reset by the API server"),
        (ConnectionResetError(), "connection reset by the API server"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "connection closed by the API server (broken pipe)"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('::1', 1)"), "connection refused"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "no route to host"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "network is unreachable"),
        (OSError(errno.ETIMEDOUT, "Connection timed out"), "connection timed out"),
        (OSError(errno.EMFILE, "Too many open files"), "too many open files"),
        (OSError(errno.EACCES, "Permission denied"), "permission denied"),
        (
            OSError("Multiple exceptions: [Errno 111] x ('::1', 1), [Errno 113] y"),
            "connection refused, no route to host",
        ),
        (OSError("not a host name"), "not a host name"),
        (OSError(), "input/output error"),
        (TimeoutError(), "connection timed out"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "no such host (DNS)"),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            "DNS lookup failed: temporary failure in name resolution",
        ),
        (socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure"), "DNS lookup failed: non-recoverable failure"),
        (tls_error("WRONG_VERSION_NUMBER"), "server does not speak TLS on this port"),
        (tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "server requires a client certificate"),
        (tls_error("TLSV1_ALERT_INTERNAL_ERROR"), "TLS rejected by the server: internal error"),
        (tls_error("TLSV1_ALERT_UNKNOWN_CA"), "client certificate signed by an authority unknown to the server"),
        (
            ssl.SSLEOFError(8, "EOF occurred in violation of protocol (_ssl.c:1006)"),
            "connection closed by the API server during TLS",
        ),
        (
            ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed"),
            "connection closed by the API server during TLS",
        ),
        (ssl.SSLError("what"), "TLS failed"),
        (verify_error(10, "certificate has expired"), "certificate has expired"),
        (verify_error(20, "unable to get local issuer certificate"), "certificate signed by unknown authority"),
        (verify_error(24, "invalid CA certificate"), "certificate is not accepted: invalid ca certificate"),
        (
            verify_error(62, "Hostname mismatch, certificate is not valid for 'east\x1b[2J'."),
            "certificate is not valid for east\\x1b[2J",
        ),
        (ValueError("two\nlines"), "two lines"),
        (ValueError("\x1b[2J"), "\\x1b[2J"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_failure_is_words(error: BaseException, words: str) -> None:
    """No class, no number, no place in a source."""
    assert words == failure_words(error)


def test_every_number_of_the_system_has_words() -> None:
    """Whatever the system says, nothing of Python's is in the text."""
    for number in errno.errorcode:
        words = failure_words(OSError(number, os.strerror(number)))
        assert words
        assert "Errno" not in words
        assert str(number) not in words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/x"), "no such file or directory"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "/x"), "is a directory"),
        (OSError(errno.EADDRINUSE, "error while attempting to bind on address …"), "address already in use"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "not valid UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(error: OSError | UnicodeError, words: str) -> None:
    """The file's name is the caller's to say."""
    assert words == file_words(error)
