"""The options of a run, what they mean together, and shards."""
