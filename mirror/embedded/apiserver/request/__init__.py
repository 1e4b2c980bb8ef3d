"""What a request is, and in which form its response goes out.

``info`` reads paths, makes the ``RequestScope`` that handlers get, and decides whether that is served; ``options`` and
``delete_options`` read the rest and the accepted form, ``responses`` writes. Depends on no handler.
"""
