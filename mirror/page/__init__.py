"""The page for people: workers, Jobs, timelines, live. Reads ``model/views`` only."""
