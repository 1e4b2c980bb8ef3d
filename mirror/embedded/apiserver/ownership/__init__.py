"""Who owns which field: sets of fields, how they come from objects, and how objects are merged by them.

The rules are those of structured-merge-diff. ``managed`` and ``patches.apply`` use it; nothing here knows of managers.
"""
