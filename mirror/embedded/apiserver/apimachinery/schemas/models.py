"""What fields mean: the descriptions of the typed client, read from the text of its modules without importing them.

Importing all of its models takes half a second and 60 MiB, reading the few that are asked for some milliseconds. Where
the client is missing, or is written differently one day, there are just no descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

_PREFIXES = ("v1", "core_v1", "rbac_v1", "admissionregistration_v1", "authentication_v1")
_FILES = {
    "EventsV1Event": "events_v1_event",
    "EventsV1EventSeries": "events_v1_event_series",
    "ApiextensionsServiceReference": "apiextensions_v1_service_reference",
    "ApiextensionsWebhookClientConfig": "apiextensions_v1_webhook_client_config",
}
_NAMES = re.compile(r"^        '(\w+)': '([^']+)',?$", re.M)
_GETTER = re.compile(
    r'    @property\n    def (\w+)\(self\):\n        """Gets the [^\n]*\n\n        (.*?)'
    r"(?:  # noqa: E501)?\n\n        :return",
    re.S,
)
_REQUIRED = re.compile(r"Invalid value for `(\w+)`, must not be `None`")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is known of a field."""

    text: str
    is_required: bool


@lru_cache(maxsize=16)
def of_fields(struct: str) -> Mapping[str, Meaning]:
    """Field → its meaning; empty if nothing is known of the struct."""
    source = _source(struct)
    if not source:
        return {}
    _, _, rest = source.partition("attribute_map = {")
    names = dict(_NAMES.findall(rest.partition("}")[0]))
    required = set(_REQUIRED.findall(source))
    texts = dict(_GETTER.findall(source))
    return {wire: Meaning(_read(texts.get(name, "")), name in required) for name, wire in names.items()}


def _read(text: str) -> str:
    """The text as it was meant: paragraphs have become two spaces."""
    return text.replace('\\"', '"').strip().replace("  ", "\n\n")


def _source(struct: str) -> str:
    folder = _folder()
    if folder is None:
        return ""
    names = [_FILES[struct]] if struct in _FILES else [f"{prefix}_{_snake(struct)}" for prefix in _PREFIXES]
    for name in names:
        path = folder / f"{name}.py"
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    return ""


@cache
def _folder() -> Path | None:
    try:
        found = find_spec("kubernetes_asyncio")
    except (ImportError, ValueError):
        return None
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / "client" / "models"


def _snake(name: str) -> str:
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words).lower()
