"""What batch/v1 is, pure: index text, conditions, times, the rules of a status update. Knows no wire and no worker."""
