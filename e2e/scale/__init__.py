"""``python -m e2e.scale``: a hundred thousand Jobs, a thousand workers and several managers, on one machine.

The clusters are embedded API servers in one process, over HTTPS (``clusters``); managers are processes as they are
installed (``managers``). Most Jobs are *copies* of some that managers have mirrored, put into storage while no manager
runs (``copies``); a *wave* is of Jobs that are created, whose statuses are played, and that end (``wave``).
"""
