"""One file per job kind, pure: is it ours, its mirror's body, what changed, its status back, is it finished.

A new kind is one file here, one line in ``kinds``, and one sample in config/samples.
"""
