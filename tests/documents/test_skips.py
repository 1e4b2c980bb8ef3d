"""No test is skipped in CI because this machine lacks something: what may skip is listed here, with the reason."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.documents.commands import TOP

SKIPS = {"skip", "skipif", "importorskip", "skipIf", "skipUnless", "SkipTest", "xfail"}
MAY = {
    "conftest.py do_without": "fails where MIRROR_REQUIRE_…=1 says so",
    "e2e/conftest.py pytest_pyfunc_call": "existing clusters alone, which CI has none of: they are never broken",
    "e2e/kind_choice.py each": "kinds that a run chooses (make kinds); their manifests and statuses are tested without",
    "e2e/test_kind_lives.py test_pods_of_what_an_app_wrapper_holds_are_found_and_their_logs": "as kind_choice.py",
    "e2e/test_kinds_not_built_in.py test_a_jax_job_is_run_here_whatever_it_says": "as kind_choice.py",
    "e2e/test_kueue.py": "a program or clusters that are named by hand; tests/flows/test_queues plays what it does",
}


def files() -> Iterator[Path]:
    yield TOP / "conftest.py"
    for folder in ("tests", "e2e"):
        yield from sorted((TOP / folder).rglob("*.py"))


def skips(file: Path) -> Iterator[str]:
    """Where a file skips: its name, and the function at its top level."""
    own = str(file.relative_to(TOP))
    for statement in ast.parse(file.read_text()).body:
        name = getattr(statement, "name", "")
        for node in ast.walk(statement):
            called = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            if called in SKIPS and not isinstance(getattr(node, "ctx", None), ast.Store):
                yield f"{own} {name}".rstrip()


def test_only_these_skip() -> None:
    """Whatever else lacks something asks the fixture `do_without`, which fails in CI."""
    found = {skip for file in files() if file != Path(__file__) for skip in skips(file)}
    assert found == MAY.keys()


@pytest.mark.parametrize(
    ("value", "outcome"), [("0", pytest.skip.Exception), ("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_a_lack_fails_where_it_is_required(
    value: str, outcome: type[BaseException], do_without: Callable[..., NoReturn], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the variable of what lacks, and the text says which."""
    monkeypatch.setenv("MIRROR_REQUIRE_TOOLS", value)
    monkeypatch.delenv("MIRROR_REQUIRE_CONTROLPLANE", raising=False)
    with pytest.raises(outcome, match=r"^(MIRROR_REQUIRE_TOOLS=1, but )?axe is missing$"):
        do_without("axe is missing")
    with pytest.raises(pytest.skip.Exception):
        do_without("etcd is missing", required_by="MIRROR_REQUIRE_CONTROLPLANE")


def test_ci_requires_both() -> None:
    """The control planes always, programs of the system once they are installed."""
    text = (TOP / ".ci/run").read_text()
    assert "export MIRROR_REQUIRE_CONTROLPLANE=1" in text
    assert "export MIRROR_REQUIRE_TOOLS=1" in text
