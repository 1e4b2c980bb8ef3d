"""What the fields of every built-in kind are: their types, how they merge, who describes them.

``STRUCTS`` (``fields``) has the types, ``apimachinery.canonical`` reads by them; ``merging`` has list types and merge
keys; ``gotypes`` has what only messages need; ``models`` has the descriptions, which it reads from the typed client.
"""

from mirror.embedded.apiserver.apimachinery.schemas.fields import STRUCTS

__all__ = ["STRUCTS"]
