"""Sending a tokenizer's texts the bulk way, whatever their length."""

from __future__ import annotations

from random import Random

import tokpack

__all__ = ["force", "forced_at_random"]


def force(tokenizer: tokpack.Tokenizer, chunk: int, few: int = 0, group: int = 1 << 19) -> bool:
    """``encode_array`` of the tokenizer takes chunks of so many characters; False if its model has no bulk path.

    Args:
        tokenizer: is changed for good.
        chunk: characters that are cut into words at a time.
        few: new words up to which they are merged one by one.
        group: bytes whose new words are resolved together.
    """
    found: bool = tokenizer._pipeline.bulk.force(chunk, few, group)
    return found


def forced_at_random(tokenizer: tokpack.Tokenizer, random: Random) -> bool:
    """Limits of any size."""
    return force(
        tokenizer,
        random.choice([*range(1, 65), 1 << 16]),
        random.choice([0, 1, 1 << 20]),
        random.choice([1, 99, 1 << 19]),
    )
