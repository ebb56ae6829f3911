"""A row of a family becomes a planned call: attributes, variants, statuses."""
