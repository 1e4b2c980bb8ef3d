"""Kinds that are data (D24): from an entry of the settings, or of the table, to ``base.Kind``.

``form`` reads an entry, ``kind`` answers for it; ``choosing`` makes the kinds of one manager of its settings.
"""
