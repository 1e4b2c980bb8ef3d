"""CronJobs: their controller, an equal of upstream's (v2). ``timing`` and ``jobs`` are pure, ``syncing`` does it."""
