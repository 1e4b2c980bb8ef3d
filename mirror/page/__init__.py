"""The page for people: workers, Jobs, timelines, live. Reads ``model/views`` only; ``serving`` is its entry point.

``query`` (which Jobs), ``health`` (how they are) and ``table`` (all Jobs, at hand) serve ``listing`` with ``strip``,
``fleet``, ``chart``, and ``detail`` with ``tabs`` and ``inside`` (HTML, pure). ``board`` keeps what is known while
somebody looks, ``activity`` the last hours, ``streams`` sends what changed. With a login ``entrance`` finds out who
looks, ``visiting`` and ``scope`` what they may see. What the browser gets besides is in ``assets``.
"""
