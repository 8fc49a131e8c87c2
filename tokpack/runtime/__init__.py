"""Encoding and decoding from a pack."""
