"""Why the process must end although nobody asked it to, in words for the operator.

Raised anywhere below ``app``, printed by ``cli`` without a traceback, exit code 1. Not here: wrong settings, which
are found before anything starts (``settings/load``).
"""

from __future__ import annotations


class MustEnd(Exception):
    """The process cannot go on; the message is one line that says why and, where possible, what to do."""


class CannotStart(MustEnd):
    """Something that is needed before the first Job can be mirrored is missing or refused."""
