"""Cases that need more than requests and answers: time, connections, users. ``suite`` finds each file's ``cases``."""
