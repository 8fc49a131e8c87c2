"""Numbers at the start of a text as the C library reads them."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np

__all__ = ["to_float", "to_int"]

_INT = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_FLOAT = re.compile(
    rb"[ \t\n\v\f\r]*([+-]?)(?:(0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?)"
    rb"|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(inf)|(nan))",
    re.IGNORECASE,
)


def to_int(text: bytes) -> int:
    """``atoi``: 0 where no number begins; large ones stay large."""
    match = _INT.match(text)
    digits = match[1][:18] if match else b"0"
    return int(digits)


def to_float(text: bytes) -> float:
    """``strtof``: 0 where no number begins, correctly rounded to single precision."""
    match = _FLOAT.match(text)
    if match is None:
        return 0.0
    sign = -1.0 if match[1] == b"-" else 1.0
    if match[5]:
        return math.nan
    if match[4]:
        return sign * math.inf
    if match[2]:
        try:
            return sign * float(_single(float.fromhex(match[2].decode()), None))
        except OverflowError:
            return sign * math.inf
    return sign * float(_single(float(match[3]), match[3].decode()))


def _single(value: float, digits: str | None) -> float:
    """``value`` to single precision; ``digits`` settle what lies halfway after the first rounding."""
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(value)
        if digits is None or len(digits) > 400 or float(near) == value or not math.isfinite(float(near)):
            return float(near)
        other = np.nextafter(near, np.float32(np.inf if value > float(near) else -np.inf))
        if not math.isfinite(float(other)) or abs(value - float(near)) != abs(float(other) - value):
            return float(near)
        exponent = re.search(r"[eE]([+-]?[0-9]+)", digits)
        if exponent and abs(int(exponent[1])) > 400:
            return float(near)
        exact = Fraction(digits)
        if exact == Fraction(value):
            return float(near)
        return max(float(near), float(other)) if exact > Fraction(value) else min(float(near), float(other))
