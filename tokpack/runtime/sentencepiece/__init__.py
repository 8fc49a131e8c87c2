"""Encoding and decoding by the rules of sentencepiece."""
