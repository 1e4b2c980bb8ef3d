"""A fault campaign on real control planes, and the judge of its history: ``python -m e2e.chaos`` (e2e/README.md)."""
