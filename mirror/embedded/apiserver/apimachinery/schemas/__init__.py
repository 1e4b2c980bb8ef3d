"""What the fields of every built-in kind are: their types, how they merge, who describes them.

``STRUCTS`` (``fields``) has the types, ``canonical`` reads by them; ``merging`` has list types and merge keys;
``gotypes`` has what only messages need; ``models`` has the descriptions, and
costs an import of the typed client.
"""

from mirror.embedded.apiserver.apimachinery.schemas.fields import STRUCTS, canonical

__all__ = ["STRUCTS", "canonical"]
