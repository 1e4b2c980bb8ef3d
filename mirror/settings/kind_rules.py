"""What a value of an entry of ``kinds`` must be; as ``rules``, which is for all other settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mirror.model.field_paths import BadPath, FieldPath
from mirror.settings.rule import Rule, Unexpected, Wrong
from mirror.settings.rules import MANAGED_BY as _MANAGED_BY
from mirror.settings.rules import SWITCH as SWITCH
from mirror.settings.rules import TEXT as TEXT
from mirror.settings.texts import shaped

_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_RESOURCE = re.compile(
    r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.v[0-9]+((alpha|beta)[0-9]+)?\.[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
)
_WORD = re.compile(r"[a-z][a-z0-9]{0,62}")
_TYPE = re.compile(r"([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_REASON = re.compile(r"([A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?)?")
_LABEL = re.compile(r"([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([-A-Za-z0-9_.]|\{(name|uid|status(\.[A-Za-z][A-Za-z0-9]*)+)\})*")
_CLAUSE = re.compile(
    r"((?P<what>condition|reason) )?(?P<name>[A-Za-z0-9/._-]{1,316}?)(?P<not>!?)=(?P<values>\S[^=]*|(?<=!=))"
)
_SIZE = re.compile(r"([1-9][0-9]{0,6})(Ki|Mi)?")
_UNITS = {"": 1, "Ki": 1024, "Mi": 1024 * 1024}
SMALLEST, LARGEST = 4 * 1024, 1024 * 1024
_MOST = 64
_LONGEST_TEXT = 256


def _path(value: object) -> str:
    if not isinstance(value, str):
        raise Unexpected
    try:
        FieldPath.of_text(value)
    except BadPath as error:
        raise Unexpected(str(error)) from None
    return value


def _whole_path(value: object) -> str:
    path = _path(value)
    if not path.startswith(("spec.", "status.")):
        raise Unexpected
    return path


def _optional_path(value: object) -> str:
    return "" if value == "" else _path(value)


def _role(value: object) -> str:
    return "" if value == "" else str(shaped(_TYPE)(value))


def _managed_by(value: object) -> str:
    return "" if value == "" else str(_MANAGED_BY.read(value))


def _scalar(value: object) -> object:
    if value is not None and not isinstance(value, bool | str | int):
        raise Unexpected
    return value


def _value(value: object) -> object:
    if value is None:
        raise Unexpected
    return _scalar(value)


def _clause(value: object) -> str:
    if not isinstance(value, str):
        raise Unexpected
    for part in alternatives(value):
        if not (found := _CLAUSE.fullmatch(part)):
            raise Unexpected
        if not found["what"]:
            _path(found["name"])
    return value


def alternatives(text: str) -> list[str]:
    """The parts of a clause, of which one has to hold."""
    return text.split(" or ")


def clause_parts(text: str) -> tuple[str, str, bool, tuple[str, ...]]:
    """A clause that the rule let pass: ``condition``, ``reason`` or nothing; of what; whether not; the values."""
    found = _CLAUSE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return found["what"] or "", found["name"], bool(found["not"]), tuple(found["values"].split("|"))


def _need(value: object) -> str:
    if not isinstance(value, str):
        raise Unexpected
    kind, *resource, path = value.split(" ") if " " in value else ("", "")
    if not _KIND.fullmatch(kind) or len(resource) > 1 or not all(map(_RESOURCE.fullmatch, resource)):
        raise Unexpected
    if not path.startswith(("spec.", "metadata.")):  # a resource whose path was forgotten looks like a path, too
        raise Unexpected
    _path(path)
    return value


def need_parts(text: str) -> tuple[str, str, str]:
    """A need that the rule let pass: its kind, ``PLURAL.VERSION.GROUP`` or nothing, and its path."""
    kind, *resource, path = text.split(" ")
    return kind, "".join(resource), path


def _owner(value: object) -> str:
    if not isinstance(value, str):
        raise Unexpected
    kind, _, resource = value.partition(" ")
    if not _KIND.fullmatch(kind) or not _RESOURCE.fullmatch(resource):
        raise Unexpected
    return value


def _label(value: object) -> str:
    if not isinstance(value, str) or (value and not _LABEL.fullmatch(value)):
        raise Unexpected
    return value


def _size(value: object) -> int:
    found = _SIZE.fullmatch(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    size = int(found[1]) * _UNITS[found[2] or ""] if found else 0
    if not SMALLEST <= size <= LARGEST:
        raise Unexpected
    return size


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1000:
        raise Unexpected
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise Unexpected
    return value


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise Unexpected
    return dict(value)


def _one_of(*words: str) -> Rule:
    def read(value: object) -> str:
        if value not in words:
            raise Unexpected
        return str(value)

    return Rule(f"one of {', '.join(words)}", read)


def _list_of(rule: Rule) -> Callable[[object], tuple[object, ...]]:
    def read(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple) or len(value) > _MOST:
            raise Unexpected
        found, problems = [], []
        for index, one in enumerate(value):
            try:
                found.append(rule.apply(one))
            except Wrong as wrong:
                problems += [(f"[{index}]{where}", what) for where, what in wrong.problems]
        if problems:
            raise Wrong(*problems)
        return tuple(found)

    return read


def _labels(value: object) -> dict[str, str]:
    found = _mapping(value)
    problems = []
    for key, text in found.items():
        if not _LABEL.fullmatch(key) or not isinstance(text, str) or not _LABEL_VALUE.fullmatch(text):
            problems.append(
                (f".{key}", "expected a label and its value, in which {name}, {uid} and {status.x} may stand")
            )
    if problems:
        raise Wrong(*problems)
    return {key: str(text) for key, text in found.items()}


PATH = Rule("the path of a field such as spec.runPolicy.suspend", _path)
OPTIONAL_PATH = Rule("the path of a field such as spec.suspend, or empty text", _optional_path)
PATHS = Rule(f"a list of at most {_MOST} paths", _list_of(Rule("a path such as spec.tasks[].template", _path)))
WHOLE_PATHS = Rule(
    f"a list of at most {_MOST} paths",
    _list_of(Rule("a path from the top such as spec.replicas or status.desiredReplicas", _whole_path)),
)
MANAGED_BY = Rule("DOMAIN/PATH of at most 63 bytes such as example.com/controller, or empty text", _managed_by)
REQUIRED_TEXT = Rule(f"one line of at most {_LONGEST_TEXT} characters", _text)
SCALAR = Rule("true, false, text, a whole number or null", _scalar)
VALUE = Rule("true, false, text or a whole number", _value)
_CLAUSES_SAY = "a clause such as condition Failed=True, reason Failed!=Retrying|Unknown, phase=Succeeded or a=b or c=d"
CLAUSES = Rule(f"a list of at most {_MOST} clauses", _list_of(Rule(_CLAUSES_SAY, _clause)))
SIZE = Rule("a size between 4Ki and 1Mi", _size)
COUNT = Rule("a whole number ≥ 0 and ≤ 1000", _count)
GENERATION = _one_of("rewrite", "keep")
PLACE = _one_of("first", "last")
RECORD = _one_of("condition", "annotation")
MAPPING = Rule("a mapping", _mapping)
CONDITION_TYPE = Rule("a condition's type such as Suspended", shaped(_TYPE))
CONDITION_STATUS = _one_of("True", "False", "Unknown")
REASON = Rule("a condition's reason such as JobSuspended, or empty text", shaped(_REASON))
KIND = Rule("a kind such as JobSet", shaped(_KIND))
RESOURCE = Rule("PLURAL.VERSION.GROUP such as jobsets.v1alpha2.jobset.x-k8s.io", shaped(_RESOURCE))
WORDS = Rule("a list of short names", _list_of(Rule("a short name such as js", shaped(_WORD))))
LABELS = Rule("a mapping of labels", _labels)
NEEDS = Rule(
    f"a list of at most {_MOST} needs",
    _list_of(
        Rule("KIND PATH or KIND PLURAL.VERSION.GROUP PATH such as Task tasks.v1.tekton.dev spec.taskRef.name", _need)
    ),
)
OWNERS = Rule(
    f"a list of at most {_MOST} owners",
    _list_of(Rule("a kind and its resource such as Job jobs.v1.batch", _owner)),
)
LABEL = Rule("a label such as example.com/role, or empty text", _label)
ROLE = Rule("a label's value such as submitter, or empty text", _role)
ROLES = Rule("a list of roles", _list_of(Rule("a label's value such as launcher", shaped(_TYPE))))
