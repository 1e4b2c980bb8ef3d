"""Objects of every kind: their strategies, and the generic store that creates, updates, deletes and lists them."""
