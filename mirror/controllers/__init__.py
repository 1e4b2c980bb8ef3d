"""The shell of mirroring: routes name keys, observing gathers, ``decide`` decides, applying writes."""
