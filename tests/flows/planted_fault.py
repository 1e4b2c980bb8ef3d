"""A fault that is planted into a copy of ``mirror/``: one change of one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PlantedFault:
    """A change of the text of one file, which breaks what a rule promises."""

    name: str
    file: str
    """Below ``mirror/``."""
    before: str
    after: str
    machine: str = "interference"
    """Of ``marathon``: whose random histories may find it."""

    def plant(self, root: Path) -> None:
        """Change it in the copy below ``root``.

        Raises:
            ValueError: the text is not there, or not once; the fault has to be written anew.
        """
        path = root / "mirror" / self.file
        text = path.read_text()
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: {self.file} has the text {text.count(self.before)} times, not once")
        path.write_text(text.replace(self.before, self.after))
