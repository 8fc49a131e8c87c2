"""Packs: one file that a runtime maps and uses at once."""
