"""What an API server answers when it says no."""

from __future__ import annotations

from typing import Any

from mirror.embedded.apiserver.apimachinery import errors


class Refused(Exception):
    """The request is answered with a Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str = "",
        *,
        about_name: str = "",
        retry_after: int | None = None,
        cause: str = "FieldValueInvalid",
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message or reason
        self.about_name = about_name
        self.retry_after = retry_after
        self.cause = cause

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}

    def status(self) -> dict[str, Any]:
        details = {"name": self.about_name, "causes": [{"field": "spec", "reason": self.cause, "message": ""}]}
        return {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": self.message,
            "details": details,
        }

    def answer(self) -> errors.StatusError:
        """The same as the embedded server has it."""
        return errors.StatusError(self.status(), headers=tuple(self.headers.items()))


def not_found(plural: str, name: str) -> Refused:
    return Refused(404, "NotFound", f'{plural} "{name}" not found', about_name=name)


def forbidden() -> Refused:
    return Refused(403, "Forbidden", "you may not")


def expired() -> Refused:
    return Refused(410, "Expired", "too old resource version")
