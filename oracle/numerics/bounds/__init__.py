"""Error bounds derived from a graph, and what is known of its nodes."""
