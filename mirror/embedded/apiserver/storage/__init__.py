"""Objects as bytes under one version counter, their history, and the file that outlives the process.

Nothing here knows a kind; what reads and writes is the ``registry``, what follows the history is ``watch``.
"""
