"""The subcommands of ``mirror``, called in process."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from mirror.cli.main import main
from mirror.model.version import version

SHIPPED = Path(__file__).parents[2] / "config" / "mirror.yaml"


def test_help_lists_the_commands() -> None:
    """Who types only ``mirror --help`` learns what there is."""
    result = CliRunner().invoke(main, ["--help"])

    assert result.exit_code == 0
    commands = ["run", "job-controller", "check-config", "version"]
    assert [name for name in commands if f"\n  {name} " in result.output] == commands


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_explains_itself(command: str) -> None:
    """Each subcommand has a help text."""
    result = CliRunner().invoke(main, [command, "-h"])

    assert result.exit_code == 0
    assert main.commands[command].help


@pytest.mark.parametrize("argument", ["version", "--version"])
def test_version_is_printed(argument: str) -> None:
    """One line, name and version; as a command, and as the option that most programs have."""
    result = CliRunner().invoke(main, [argument])

    assert (result.exit_code, result.output) == (0, f"mirror {version()}\n")


def test_the_version_is_that_of_the_project() -> None:
    """Installed from this tree, so nothing else than what pyproject.toml says."""
    project = tomllib.loads((SHIPPED.parents[1] / "pyproject.toml").read_text())["project"]

    assert CliRunner().invoke(main, ["--version"]).output == f"mirror {project['version']}\n"


def test_good_settings_are_fine() -> None:
    """The shipped settings pass the check."""
    result = CliRunner().invoke(main, ["check-config", str(SHIPPED)])

    assert (result.exit_code, result.output) == (0, f"{SHIPPED}: valid\n")


@pytest.mark.parametrize("command", [["check-config"], ["run", "--config"]], ids=["check-config", "run"])
def test_bad_settings_end_with_two_and_a_line_each(tmp_path: Path, command: list[str]) -> None:
    """Both commands tell every problem on stderr, without a traceback, and exit with 2."""
    file = tmp_path / "mine.yaml"
    file.write_text("workers: {qps: fast, qsp: 1}\n")

    result = CliRunner().invoke(main, [*command, str(file)])

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f'{file}: workers.qps: expected a number ≥ 0 (0: unlimited) and ≤ 1000000, got "fast"',
        f"{file}: workers.qsp: unknown key (did you mean qps?)",
    ]


@pytest.mark.parametrize("command", [["check-config"], ["run", "--config"]], ids=["check-config", "run"])
def test_a_missing_file_ends_with_two(command: list[str]) -> None:
    """A path that does not exist is told like any wrong setting."""
    result = CliRunner().invoke(main, [*command, "no/such/file.yaml"])

    assert (result.exit_code, result.stderr) == (2, "no/such/file.yaml: cannot be read: No such file or directory\n")


@pytest.mark.parametrize("arguments", [["run"], ["check-config"], ["fly"]], ids=["no config", "no file", "no command"])
def test_wrong_usage_ends_with_two(arguments: list[str]) -> None:
    """What click refuses has the same exit code as wrong settings."""
    assert CliRunner().invoke(main, arguments).exit_code == 2


def test_the_command_starts_without_what_only_running_needs() -> None:
    """Help and settings checks do not pay for the HTTP client, metrics or the rooms above them."""
    probe = (
        "import sys, mirror.cli.main; print([m for m in ('aiohttp', 'prometheus_client', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
