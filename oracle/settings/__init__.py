"""The options of a run, their combined meaning, and shards."""
