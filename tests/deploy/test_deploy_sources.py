"""The sources in deploy/: copies are up to date, scripts and the Dockerfile are clean, versions agree."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from mirror.settings.load import load

TOP = Path(__file__).parents[2]
DEPLOY = TOP / "deploy"
PROGRAMS = Path(sys.executable).parent
SCRIPTS = sorted(
    path
    for folder in (".ci", "deploy", "e2e", "config", "docs")
    for path in (TOP / folder).rglob("*")
    if path.is_file() and path.suffix in ("", ".sh") and re.match(rb"#!.*\b(ba)?sh\b", path.read_bytes()[:64])
)
CONFIGS = sorted((DEPLOY / "kustomize").rglob("mirror.yaml"))


def shown(path: Path) -> str:
    return str(path.relative_to(TOP))


def test_copies_are_up_to_date() -> None:
    """Rights, alerts and the version are those of their sources: `python deploy/generate.py` changes nothing."""
    done = subprocess.run(
        [sys.executable, DEPLOY / "generate.py", "--check"], capture_output=True, text=True, timeout=280
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=shown)
def test_shell_scripts_are_clean(script: Path) -> None:
    """ShellCheck has nothing to say."""
    done = subprocess.run([PROGRAMS / "shellcheck", "-x", script], capture_output=True, text=True, timeout=280)

    assert done.stdout == ""


def test_the_scripts_are_found() -> None:
    """Those that the list above must not lose."""
    assert {"deploy/image/install.sh", "e2e/kind/run.sh", ".ci/run"} <= set(map(shown, SCRIPTS))


def test_the_dockerfile_is_clean() -> None:
    """hadolint has nothing to say."""
    dockerfile = DEPLOY / "image/Dockerfile"
    done = subprocess.run([PROGRAMS / "hadolint", dockerfile], capture_output=True, text=True, timeout=280)

    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_what_the_deployment_expects() -> None:
    """A pinned base, the same user, a numeric one, and the same command."""
    text = (DEPLOY / "image/Dockerfile").read_text()
    deployment = yaml.safe_load((DEPLOY / "kustomize/base/deployment.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]

    assert re.search(r"^ARG BASE=python:3\.\d+\.\d+-slim-\w+$", text, re.MULTILINE)
    user = pod["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}\n" in text
    command = re.search(r"^CMD (\[.+\])$", text, re.MULTILINE)
    assert command is not None
    assert yaml.safe_load(command[1]) == pod["containers"][0]["args"]
    assert "ENV PATH" in text
    assert "PYTHONUNBUFFERED=1" in text


def test_one_version_everywhere() -> None:
    """pyproject.toml's is the chart's and the image's."""
    version = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((DEPLOY / "helm/jobmirror/Chart.yaml").read_text())
    base = yaml.safe_load((DEPLOY / "kustomize/base/kustomization.yaml").read_text())

    assert {chart["version"], chart["appVersion"], base["images"][0]["newTag"]} == {version}


@pytest.mark.parametrize("file", CONFIGS, ids=shown)
def test_every_configuration_can_be_used(file: Path) -> None:
    """The manager starts with what an overlay gives it."""
    assert load(file).listen == ":8080"


@pytest.mark.parametrize("component", ["access", "webhook"])
def test_who_serves_https_goes_on_until_nobody_is_led_to_it(component: str) -> None:
    """A pod gets connections for a moment after it was told to end: `failurePolicy: Fail` would refuse Jobs."""
    patch = yaml.safe_load((DEPLOY / f"kustomize/components/{component}/deployment.yaml").read_text())
    base = yaml.safe_load((DEPLOY / "kustomize/base/deployment.yaml").read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    seconds = container["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert 3 <= seconds <= base["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] - 15


@pytest.mark.parametrize("name", ["management-secret-sources", "management-cluster-profiles"])
def test_rights_on_others_declarations_are_roles_that_read(name: str) -> None:
    """No ClusterRole, nothing but events is written, and both ways to install it have a copy."""
    documents = list(yaml.safe_load_all((TOP / f"config/rbac/{name}.yaml").read_text()))
    rules = [rule for one in documents for rule in one.get("rules", ())]
    component = yaml.safe_load(
        (DEPLOY / f"kustomize/components/{name.removeprefix('management-')}/kustomization.yaml").read_text()
    )

    assert {one["kind"] for one in documents} == {"Role", "RoleBinding"}
    written = [rule["resources"] for rule in rules if not set(rule["verbs"]) <= {"get", "list", "watch"}]
    assert written == [["events"]]
    assert len(component["resources"]) == 1
    chart = (DEPLOY / f"helm/jobmirror/templates/rights/{name}.yaml").read_text()
    assert "{{- range (include" in chart
