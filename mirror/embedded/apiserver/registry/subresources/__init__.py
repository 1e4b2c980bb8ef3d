"""Subresources that are not read and written like an object, one file each; ``table`` says what answers which."""
