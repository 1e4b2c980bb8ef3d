"""Validation of pod templates: what the API refuses in the part of a Job that becomes its pods (C31)."""
