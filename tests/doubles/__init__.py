"""Doubles that several rooms' tests share: an API server in memory, its transport, clocks, whole managers."""
