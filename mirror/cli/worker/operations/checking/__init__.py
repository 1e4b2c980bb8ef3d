"""``mirror worker check``: what is wrong with a worker, and how to mend it. ``judging`` is pure, ``probing`` asks."""
