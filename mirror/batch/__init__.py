"""What batch/v1 is, pure: decoding, defaults, what a server sets and refuses, conditions, times, index text."""
