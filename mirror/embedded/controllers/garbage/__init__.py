"""Garbage collection: what watches show goes into ``graph``, which names what ``collecting`` looks at."""
