"""The kinds of Jobs that are mirrored: what everything else needs of a kind is in ``base``, the kinds in ``registry``.

A new kind is an entry of the setting ``kinds``, or of ``declared/built_in.yaml``; what no entry can say is code: one
module or package here, which ``declared.kind.DeclaredKind`` does most of, and one line in ``registry``. Pure.
"""
