"""The built-in Job controller's equal: pure decisions in ``decide``, a thin shell around (docs/job-controller.md)."""
