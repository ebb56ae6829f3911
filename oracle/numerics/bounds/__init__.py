"""Error bounds derived from a graph, and known properties of its nodes."""
