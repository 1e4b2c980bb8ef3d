"""Machinery that knows no job: store, informer, work queue, consumer loop, supervision, leadership, events, clock."""
