"""How commands are found: help in sections, completion, the plugin's name; and that looking costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from mirror.cli.main import PLUGIN, kubectl_complete, main

USERS = ("get", "explain", "logs", "pods", "events", "diff", "place")


def test_help_has_sections_and_each_command_once() -> None:
    """Users find theirs first; what is in no section is not forgotten."""
    lines = CliRunner().invoke(main, ["--help"]).output.splitlines()

    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options:", "For users:", "For operators:", "Running:", "Other commands:"]
    after = lines[lines.index("For users:") :]
    listed = [line.split()[0] for line in after if line.startswith("  ") and not line.startswith("   ")]
    assert listed[: len(USERS)] == list(USERS)
    assert sorted(listed) == sorted(main.commands)


@pytest.mark.parametrize("command", USERS)
def test_every_command_for_users_says_where_it_looks(command: str) -> None:
    """The same options everywhere."""
    text = CliRunner().invoke(main, [command, "--help"]).output

    for option in ("--kubeconfig", "--context", "--namespace", "--server", "--token", "--manager-namespace"):
        assert option in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_calls_us(shell: str) -> None:
    """click's own, under our name."""
    result = CliRunner().invoke(main, ["completion", shell])

    assert result.exit_code == 0
    assert f"_MIRROR_COMPLETE={shell}_complete" in result.output


@pytest.mark.parametrize(
    ("arguments", "offered"),
    [
        (["ge"], ["get"]),
        (["get", "-o", "j"], ["json"]),
        (["logs", "--all"], ["--all-pods", "--all-containers"]),
        ([], ["get", "explain"]),
        (["nothing", "such"], []),
    ],
    ids=" ".join,
)
def test_kubectl_is_told_what_may_stand_there(
    arguments: list[str],
    offered: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line each, a tab before the help, and a directive at the end that keeps the shell from offering files."""
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-mirror", *arguments])

    kubectl_complete()

    *lines, directive = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines][: len(offered)] == offered
    assert directive == ":4"


def test_the_plugin_calls_itself_by_kubectls_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Usage lines are to be copied."""
    assert "Usage: kubectl mirror get" in CliRunner().invoke(main, ["get", "--help"], prog_name=PLUGIN).output


@pytest.mark.slow
def test_a_command_for_users_does_not_wait_for_what_only_the_manager_needs() -> None:
    """``mirror get`` starts without kubernetes_asyncio, metrics, rich, placement or a server: twice its time."""
    unwanted = ("kubernetes_asyncio", "prometheus_client", "rich", "mirror.placement", "aiohttp.web")
    probe = f"import sys, mirror.cli.user.get; print([m for m in {unwanted} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stdout in ("[]\n", "['aiohttp.web']\n")
