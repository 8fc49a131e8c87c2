"""Encoding and decoding of long texts with numpy: the same ids as the scalar path, many words at a time."""
