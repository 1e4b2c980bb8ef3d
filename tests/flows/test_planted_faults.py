"""The random flows can tell a broken manager from a whole one: every planted fault breaks a rule in its history."""

from __future__ import annotations

import shutil
from pathlib import Path

import planted_histories
import pytest
from planted_faults import FAULTS, ROOT, PlantedFault, look_for

NAMES = [fault.name for fault in FAULTS]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that faults are planted into."""
    root = tmp_path_factory.mktemp("copy")
    for file in {fault.file for fault in FAULTS}:
        (root / "mirror" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "mirror" / file, root / "mirror" / file)
    return root


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_planted_fault_changes_one_place(fault: PlantedFault, copy: Path) -> None:
    """What it replaces is still there, once."""
    before = (copy / "mirror" / fault.file).read_text()
    fault.plant(copy)
    (copy / "mirror" / fault.file).write_text(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_without_its_fault_a_history_ends_well(name: str) -> None:
    """What is found in it is the fault, and nothing else."""
    planted_histories.play(name)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_planted_fault_is_found(fault: PlantedFault) -> None:
    """It breaks a rule in its history."""
    assert "AssertionError" in look_for(fault, seeds=0)
