"""What can be configured, what each value may be, and reading it from a file. Does no other I/O."""
