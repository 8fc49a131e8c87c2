"""Which patterns the vectorised splitters stand for. No numpy: the scalar path asks, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokpack.records import dataclass
from tokpack.typed import Any

__all__ = [
    "COLLAPSED",
    "DEEPSEEK",
    "HAN_RANGES",
    "PATTERNS",
    "SCANNER_RULES",
    "Rules",
    "known_split",
    "rules_of_chain",
    "rules_of_collapsed",
    "rules_of_pattern",
    "rules_of_scanners",
    "rules_of_steps",
]


@dataclass(frozen=True, slots=True)
class Rules:
    """What patterns of one family differ in.

    Attributes:
        family: ``gpt2``, ``cl100k``, ``o200k`` or ``deepseek``.
        digits: numbers in a word: 0 for any, else at most so many.
        last_run: white space that ends the text is one word (``\\s++$``).
        alone: numbers are cut out by a step of their own before the pattern.
        suffixes: contractions go with the word before them (``o200k``).
    """

    family: str
    digits: int = 0
    last_run: bool = False
    alone: bool = False
    suffixes: bool = True


_CASELESS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"


def _o200k(suffix: str, numbers: str) -> str:
    return (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        + suffix
        + r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        + suffix
        + "|"
        + numbers
        + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
        + _TAIL
    )


_QWEN35 = r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"


def _cl100k(numbers: str) -> str:
    return _CASELESS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + numbers + r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + _TAIL


_POSSESSIVE = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
PATTERNS: dict[str, Rules] = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": Rules("gpt2"),
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": Rules("gpt2"),
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": Rules("gpt2"),
    _cl100k(r"\p{N}{1,3}"): Rules("cl100k", digits=3),
    _cl100k(r"\p{N}"): Rules("cl100k", digits=1),
    _CASELESS + _QWEN35 + _TAIL: Rules("cl100k", digits=1),
    _POSSESSIVE: Rules("cl100k", digits=3, last_run=True),
    _o200k(_CASELESS + "?", r"\p{N}{1,3}"): Rules("o200k", digits=3),
    _o200k("", r"\p{N}"): Rules("o200k", digits=1, suffixes=False),
}

# three steps, each of which cuts out its matches
DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
)

HAN_RANGES = ((0x4E00, 0x9FA5), (0x3040, 0x309F), (0x30A0, 0x30FF))  # of the second

# llama.cpp's hand-written splitters
SCANNER_RULES = {
    "gpt2": Rules("gpt2"),
    "llama3": Rules("cl100k", digits=3),
    "qwen2": Rules("cl100k", digits=1),
    "qwen35": Rules("cl100k", digits=1),
}


def _cased(suffix: str, numbers: str) -> str:
    some, lead = r"((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+", r"[^\r\n\p{L}\p{N}]?"
    more = r"((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*"
    return f"{lead}{some}{suffix}|{lead}{more}{suffix}|{numbers}" + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _TAIL


# llama.cpp's patterns that stand alone, on collapsed text
COLLAPSED = {
    _cased(r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?", r"\p{N}{1,3}"): Rules("o200k", digits=3),
    _cased("", r"\p{N}"): Rules("o200k", digits=1, suffixes=False),
}


def rules_of_pattern(pattern: str, *, onig: bool) -> Rules | None:
    """The family of a pattern of the tokenizers library (``onig``) or of tiktoken, or None."""
    pattern = pattern.replace("\r", r"\r").replace("\n", r"\n")
    if pattern == _POSSESSIVE and onig:
        # {1,3}+ is possessive to tiktoken, but one or more times {1,3} to Oniguruma
        return Rules("cl100k", last_run=True)
    return PATTERNS.get(pattern)


def rules_of_scanners(steps: Sequence[Mapping[str, Any]]) -> tuple[Rules, str] | None:
    """(family, name of the scanner) of llama.cpp's pre-tokenizer steps, or None."""
    alone = len(steps) == 2 and steps[0].get("pattern") == r"\p{N}" and steps[0].get("kind") == "split"
    if not steps or len(steps) > 1 + alone or steps[-1].get("kind") != "scanner-split":
        return None
    name = str(steps[-1].get("scanner"))
    rules = SCANNER_RULES.get(name)
    if rules is None or not alone:
        return None if rules is None else (rules, name)
    return (Rules("gpt2", alone=True), name) if rules.family == "gpt2" else None


def rules_of_collapsed(steps: Sequence[Mapping[str, Any]]) -> tuple[Rules, tuple[str, ...]] | None:
    """(family, patterns on collapsed text) of llama.cpp's pre-tokenizer steps, or None.

    Of the deepseek family these are the first and the last step.
    """
    if any(step.get("kind") != "split" or step.get("behavior") != "isolated" or step.get("invert") for step in steps):
        return None
    dialects = [step.get("dialect") for step in steps]
    patterns = [str(step.get("pattern")) for step in steps]
    if dialects == ["std-regex-collapsed"]:
        rules = COLLAPSED.get(patterns[0])
        return None if rules is None else (rules, (patterns[0],))
    if dialects != ["std-regex-collapsed", "std-wregex", "std-regex-collapsed"] or not _is_deepseek(patterns):
        return None
    return Rules("deepseek", digits=3), (patterns[0], patterns[2])


def _is_deepseek(patterns: Sequence[str]) -> bool:
    plain = (one.replace("\r", r"\r").replace("\n", r"\n").replace('[!"', r"[!\"") for one in patterns)
    return tuple(plain) == DEEPSEEK


def known_split(step: Mapping[str, Any]) -> Rules | None:
    """The rules of a split of the tokenizers library that keeps the matches of a pattern that matches everywhere."""
    if step["kind"] != "split" or step["dialect"] != "onig":
        return None
    if (step["behavior"], bool(step["invert"])) not in (("isolated", False), ("removed", True)):
        return None
    return rules_of_pattern(step["pattern"], onig=True)


def rules_of_chain(steps: Sequence[Mapping[str, Any]]) -> tuple[Rules, tuple[str, ...]] | None:
    """(family, patterns) of pre-tokenizer steps of the tokenizers library whose splits are made one after the other."""
    if len(steps) != 4 or steps[-1]["kind"] != "byte-level" or steps[-1]["use_regex"]:
        return None
    patterns = []
    for step in steps[:-1]:
        if step["kind"] != "split" or step["dialect"] != "onig" or step["behavior"] != "isolated" or step["invert"]:
            return None
        patterns.append(str(step["pattern"]))
    return (Rules("deepseek", digits=3), tuple(patterns)) if _is_deepseek(patterns) else None


def rules_of_steps(steps: Sequence[Mapping[str, Any]], own: str) -> tuple[Rules, str] | None:
    """(family, pattern) of pre-tokenizer steps of the tokenizers library that end in one to bytes, or None.

    ``own`` is the pattern of that step.
    """
    if not steps or len(steps) > 2 or steps[-1]["kind"] != "byte-level":
        return None
    first, last = steps[0], steps[-1]
    if len(steps) == 1:
        rules = rules_of_pattern(own, onig=True)
        return (rules, own) if last["use_regex"] and rules is not None else None
    if not last["use_regex"]:
        rules = known_split(first)
        return None if rules is None else (rules, str(first["pattern"]))
    numbers = first["kind"] == "digits" and first["individual_digits"]
    return (Rules("gpt2", alone=True), own) if numbers else None
