"""How a worker is emptied: the values of the annotation ``drain`` on what declares it (D14, D15)."""

WAIT = "wait"
"""No new Jobs; those that are there end there."""
MOVE = "move"
"""Those that have not started, or are suspended, go to other workers; the others end there."""
MOVE_STARTED = "move-started"
"""Those that run are stopped, and go on elsewhere."""
DRAINS = (WAIT, MOVE, MOVE_STARTED)
MOVING = (MOVE, MOVE_STARTED)
