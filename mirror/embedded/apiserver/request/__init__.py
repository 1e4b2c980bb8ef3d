"""What a request is, and how its response looks.

``info`` reads the path, ``routing`` finds what serves it, ``scope`` is what handlers get of it; options of the query or
a body; the form that the client wants (``negotiation``) and responses in it.
"""
