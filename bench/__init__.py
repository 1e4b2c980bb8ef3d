"""Measures controllers that run Jobs, on other clusters or their own, from outside. README.md beside this says how."""
