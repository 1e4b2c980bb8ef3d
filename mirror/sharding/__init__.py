"""Several active managers: who works on which workers (S1–S8, decision 0025), where ``sharding.slots`` is over 1."""
