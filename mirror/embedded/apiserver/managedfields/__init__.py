"""``metadata.managedFields``: who owns which field (``field_manager``), by sets of fields and how objects are merged.

The rules of sets and merging are those of structured-merge-diff. Writes call ``field_manager``, apply is in ``patch``.
"""
