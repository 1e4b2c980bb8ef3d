"""``tests/contract``, the suite of API behaviour, played on real servers, and written down from them."""
