"""API servers that are killed and that hang, and come back: what is waiting is done at once (D6, D12, D13).

These control planes belong to this file, since it breaks them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from e2e.controlplane.client import Json
from e2e.controlplane.components import BARE, WORKER
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.provider import Binaries, start_all
from e2e.jobs import Scene, is_complete, job, placed_on, runs, uid
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder
from e2e.waves import assert_ran_once, sources, until_over, until_sources
