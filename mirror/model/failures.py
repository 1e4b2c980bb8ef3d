"""Failures of the network, of TLS and of the operating system, in the words that Kubernetes' own tools use.

The one place that turns such an exception into text for people: conditions, events, annotations, health, the ConfigMap
``jobmirror-workers``, the page and every command. Class names, ``errno`` numbers and OpenSSL's source lines stay out of
it. What an HTTP library adds to these is in ``kube.failure_words``. Not here: what a failure proves (``kube.errors``).
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl

from mirror.model.text import clean

API_SERVER = "the API server"
"""Who is at the other end of most connections."""

LONGEST_WORDS = 200

_NUMBER = re.compile(r"\[Errno (-?\d+)\]")


def failure_words(error: BaseException, *, peer: str = API_SERVER) -> str:
    """What went wrong, as a phrase without a subject of ours: ``connection refused``, ``certificate has expired``.

    Args:
        error: an exception of ``socket``, ``ssl`` or the operating system; of any other its text.
        peer: who was at the other end.
    """
    match error:
        case ssl.SSLCertVerificationError():
            return _certificate_words(error)
        case ssl.SSLError():
            return _tls_words(error, peer)
        case socket.gaierror() | socket.herror():
            return _lookup_words(error)
        case TimeoutError():
            return "connection timed out"
        case OSError():
            return _os_words(error, peer)
        case UnicodeError():
            return "not valid UTF-8"
    return clean(" ".join(str(error).split()), longest=LONGEST_WORDS) or "unknown failure"


def file_words(error: OSError | UnicodeError) -> str:
    """Why a file, a directory or an address of this machine cannot be used: ``permission denied``."""
    return failure_words(error, peer="the other end")


# OpenSSL's X509_V_ERR_…; in Go's words where it has some.
_OF_VERIFICATION = {
    9: "certificate is not yet valid (check both clocks)",
    10: "certificate has expired",
    **dict.fromkeys((2, 7, 18, 19, 20, 21, 27), "certificate signed by unknown authority"),
    23: "certificate has been revoked",
    **dict.fromkeys((62, 63, 64), "certificate is not valid for this host"),
}


def _certificate_words(error: ssl.SSLCertVerificationError) -> str:
    words = _OF_VERIFICATION.get(getattr(error, "verify_code", 0))
    if words is None:
        return f"certificate is not accepted: {_lowered(getattr(error, 'verify_message', '') or 'verification failed')}"
    # "Hostname mismatch, certificate is not valid for 'east.example'.": the only one that says more than its number.
    named = re.search(r"not valid for '([^']{1,253})'", getattr(error, "verify_message", "") or "")
    return f"certificate is not valid for {clean(named[1])}" if named else words


_NO_TLS = "server does not speak TLS on this port"
_OF_TLS = {
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "HTTP_REQUEST": _NO_TLS,
    "HTTPS_PROXY_REQUEST": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "UNKNOWN_PROTOCOL": _NO_TLS,
    "UNSUPPORTED_PROTOCOL": "no TLS version in common with the server",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no TLS version in common with the server",
    "NO_SHARED_CIPHER": "no TLS cipher in common with the server",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "TLS handshake rejected by the server",
    "TLSV1_UNRECOGNIZED_NAME": "server does not know this host name (TLS SNI)",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "server requires a client certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "client certificate rejected by the server",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "client certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "client certificate has been revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "client certificate rejected by the server",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "client certificate rejected by the server",
    "TLSV1_ALERT_UNKNOWN_CA": "client certificate signed by an authority unknown to the server",
    "TLSV1_ALERT_DECRYPT_ERROR": "client certificate rejected by the server",
    "TLSV1_ALERT_ACCESS_DENIED": "client certificate rejected by the server",
    "CERTIFICATE_VERIFY_FAILED": "certificate signed by unknown authority",
}


def _tls_words(error: ssl.SSLError, peer: str) -> str:
    reason = (getattr(error, "reason", None) or "").upper()
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or "EOF" in reason:
        return f"connection closed by {peer} during TLS"
    if reason in _OF_TLS:
        return _OF_TLS[reason]
    _, is_alert, what = reason.partition("_ALERT_")
    if is_alert:
        return f"TLS rejected by the server: {_lowered(what.replace('_', ' '))}"
    return f"TLS failed: {_lowered(reason.replace('_', ' '))}" if reason else "TLS failed"


def _lookup_words(error: OSError) -> str:
    """The name itself is in the kubeconfig's address, and most texts name that already."""
    if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
        return "no such host (DNS)"
    if error.errno == socket.EAI_AGAIN:
        return "DNS lookup failed: temporary failure in name resolution"
    return f"DNS lookup failed: {_lowered(error.strerror or 'unknown failure')}"


_NUMBER_OF_CLASS: dict[type[OSError], int] = {
    ConnectionRefusedError: errno.ECONNREFUSED,
    ConnectionResetError: errno.ECONNRESET,
    ConnectionAbortedError: errno.ECONNABORTED,
    BrokenPipeError: errno.EPIPE,
}


def _os_words(error: OSError, peer: str) -> str:
    # asyncio raises some by their class alone.
    number = error.errno or _NUMBER_OF_CLASS.get(type(error), 0)
    if number:
        return _number_words(number, peer) or _own_words(error)
    # Several addresses were tried, each in vain: "Multiple exceptions: [Errno 111] …, [Errno 113] …".
    numbers = dict.fromkeys(int(found) for found in _NUMBER.findall(str(error)))
    words = dict.fromkeys(_number_words(number, peer) or os.strerror(number).lower() for number in numbers)
    return ", ".join(words) or _own_words(error)


def _number_words(number: int, peer: str) -> str:
    return {
        errno.ECONNREFUSED: "connection refused",
        errno.ECONNRESET: f"connection reset by {peer}",
        errno.ECONNABORTED: "connection aborted",
        errno.EPIPE: f"connection closed by {peer} (broken pipe)",
        errno.ESHUTDOWN: f"connection closed by {peer}",
        errno.ENOTCONN: f"connection closed by {peer}",
        errno.ETIMEDOUT: "connection timed out",
        errno.EHOSTUNREACH: "no route to host",
        errno.EHOSTDOWN: "host is down",
        errno.ENETUNREACH: "network is unreachable",
        errno.ENETDOWN: "network is down",
        errno.EADDRNOTAVAIL: "address not available",
        errno.EADDRINUSE: "address already in use",
        errno.EMFILE: "too many open files",
        errno.ENFILE: "too many open files on this machine",
    }.get(number, "")


def _own_words(error: OSError) -> str:
    """Of an error that nobody else has words for; a text of ours, given as its ``strerror``, stays."""
    text = error.strerror or _NUMBER.sub("", str(error)).strip() or "input/output error"
    return _lowered(text) if error.errno and text == os.strerror(error.errno) else clean(text, longest=LONGEST_WORDS)


def _lowered(text: str) -> str:
    return clean(" ".join(text.lower().split()).rstrip("."), longest=LONGEST_WORDS)
