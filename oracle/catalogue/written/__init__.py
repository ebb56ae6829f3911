"""A catalogue file as it is written: schema, words, shapes, layers."""
