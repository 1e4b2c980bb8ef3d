"""Several active managers (S1–S13, decisions 0025 and 0031), where ``sharding.slots`` is over 1: who works on what."""
