"""The built-in kinds, one file each: what is special about them beside what all objects have in common.

``table.builtin`` lists them for the registry; ``actions`` are subresources that are no object that is read and written.
Kinds of access control are in ``access``, those of definitions and webhooks in ``crds`` and ``admission``.
"""

from mirror.embedded.apiserver.resources.table import builtin

__all__ = ["builtin"]
