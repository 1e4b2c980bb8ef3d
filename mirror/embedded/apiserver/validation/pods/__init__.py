"""Rules of pods and of their templates."""

from __future__ import annotations
