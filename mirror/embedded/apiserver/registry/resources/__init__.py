"""The strategies of the built-in kinds, one file each."""
