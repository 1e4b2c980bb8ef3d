"""Whether the server is alive and ready: ``/healthz``, ``/livez``, ``/readyz``. It always is when it can answer."""

from __future__ import annotations

from mirror.embedded.apiserver.messages import Request, Response

_PATHS = ("healthz", "livez", "readyz")
_TEXT = "text/plain; charset=utf-8"
_CHECKS = ("ping", "log", "etcd")


def answer(request: Request) -> Response | None:
    """The answer on these paths, whatever the method; None on others."""
    first, slash, check = request.path.removeprefix("/").partition("/")
    if first not in _PATHS or (slash and check not in _CHECKS):
        return None
    if "verbose" not in request.query or check:
        return Response(200, b"ok", _TEXT)
    lines = [f"[+]{one} ok" for one in _CHECKS]
    return Response(200, "\n".join([*lines, f"{first} check passed", ""]).encode(), _TEXT)
