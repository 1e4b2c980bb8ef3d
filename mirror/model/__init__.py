"""Words that every room shares: names on the wire, keys, durations. Pure, imports nothing of ours."""
