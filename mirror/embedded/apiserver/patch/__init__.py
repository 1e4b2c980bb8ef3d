"""Patches: ``patching`` for JSON, merge and strategic merge patches, ``applying`` for server-side apply."""
