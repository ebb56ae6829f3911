"""Catalogue files as written: schema, words, shapes, layers."""
