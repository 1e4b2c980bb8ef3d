"""The commands for who runs Jobs: ``get``, ``explain``, ``logs``, ``pods``, ``events``, ``diff``."""
