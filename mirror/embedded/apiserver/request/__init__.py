"""What a request is, and in which form its response goes out.

``info`` reads paths, the accepted form, and makes the ``RequestScope`` that handlers get; ``options`` and
``delete_options`` the rest, ``routing`` decides whether that is served, ``responses`` writes. Depends on no handler.
"""
