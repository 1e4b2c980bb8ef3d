"""The kinds of Jobs that are mirrored: what everything else needs of a kind is in ``base``, the kinds in ``registry``.

A new kind is one module or package here and one line in ``registry``. Pure.
"""
