"""The page for people: workers, Jobs, timelines, live. Reads ``model/views`` only; ``serving`` is its door.

``query`` (which Jobs) and ``table`` (all Jobs, at hand) serve ``listing`` and ``detail`` (HTML, pure), ``board`` keeps
what is known while somebody looks, ``streams`` sends what changed. What the browser gets besides is in ``assets``.
"""
