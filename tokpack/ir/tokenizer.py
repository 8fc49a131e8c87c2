"""TokenizerIR: everything that decides ids and text, and where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from tokpack.errors import Location
from tokpack.findings import Finding, Severity
from tokpack.ir.model import BPE, Model
from tokpack.ir.steps import DecoderStep, NormalizerStep, PostProcessor, PreTokenizerStep
from tokpack.ir.vocab import AddedToken, Alphabet, Matching, Vocab

__all__ = ["Reference", "Source", "SpecialId", "Specials", "TokenizerIR"]


class Reference(str, Enum):
    """The implementation whose ids a tokenizer reproduces."""

    LLAMA_CPP = "llama.cpp"
    HUGGINGFACE = "huggingface"
    MNN = "mnn"
    SENTENCEPIECE = "sentencepiece"
    TIKTOKEN = "tiktoken"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class SpecialId:
    """The id of a role and where it came from: a key of the file, the reference's default, or a piece's text."""

    id: int
    origin: str


@dataclass(frozen=True, slots=True)
class Specials:
    """Ids with a role.

    Attributes:
        roles: bos, eos, eot, eom, unk, sep, pad, mask, cls, fim_pre … → id and origin; absent roles are absent.
        eog: ids that end generation, ascending.
        suppress: ids never to be sampled.
    """

    roles: Mapping[str, SpecialId] = field(default_factory=dict)
    eog: tuple[int, ...] = ()
    suppress: tuple[int, ...] = ()

    def get(self, role: str) -> int | None:
        """Id of ``role``, or None."""
        entry = self.roles.get(role)
        return None if entry is None else entry.id


@dataclass(frozen=True, slots=True)
class Source:
    """What was read: format name, and facts worth showing (version, byte order, names)."""

    format: str
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class TokenizerIR:
    """A tokenizer, independent of any file format.

    Attributes:
        reference: whose ids these are.
        rules: version tag of the reference's rules that were applied, such as a commit.
        unicode: name of the character tables in :mod:`tokpack.unicode`.
        vocab, alphabet, model, normalizer, pre_tokenizer, decoder, post_processor: the pipeline.
        added_tokens: in the order that ``matching.rule`` uses.
        chat_templates: name → text; the unnamed template is called ``default``.
        extras: source keys that tokpack does not interpret, as (type tag, value).
        findings: what the reader noticed.
    """

    reference: Reference
    rules: str
    unicode: str
    vocab: Vocab
    alphabet: Alphabet
    model: Model
    matching: Matching
    normalizer: tuple[NormalizerStep, ...] = ()
    pre_tokenizer: tuple[PreTokenizerStep, ...] = ()
    decoder: tuple[DecoderStep, ...] = ()
    post_processor: PostProcessor | None = None
    added_tokens: tuple[AddedToken, ...] = ()
    specials: Specials = field(default_factory=Specials)
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    source: Source = field(default_factory=lambda: Source("memory"))
    extras: Mapping[str, object] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def validate(self) -> list[Finding]:
        """Findings about the IR itself: sizes that disagree, ids out of range, unreachable or unspellable parts."""
        found: list[Finding] = []

        def refuse(code: str, message: str, path: str) -> None:
            found.append(Finding(code, Severity.REFUSE, message, Location(None, path)))

        size = len(self.vocab)
        for name in ("types", "attrs", "scores"):
            array = getattr(self.vocab, name)
            if array is not None and array.shape != (size,):
                refuse("ir-sizes", f"{name} has shape {array.shape}, the vocabulary {size} pieces", f"vocab.{name}")
        for role, entry in self.specials.roles.items():
            if not 0 <= entry.id < size:
                refuse("ir-id-range", f"{role} id {entry.id} is outside 0..{size - 1}", f"specials.{role}")
        for token in self.added_tokens:
            if not 0 <= token.id < size:
                refuse("ir-id-range", f"added token id {token.id} is outside 0..{size - 1}", "added_tokens")
        for eog in self.specials.eog:
            if not 0 <= eog < size:
                refuse("ir-id-range", f"end-of-generation id {eog} is outside 0..{size - 1}", "specials.eog")
        if isinstance(self.model, BPE) and self.model.ranks is not None:
            ranks = self.model.ranks
            if len(ranks) != len(self.model.merges) or any(a >= b for a, b in pairwise(ranks)):
                refuse("ir-merge-ranks", "merge ranks are not one ascending number per merge", "model.ranks")
        return found
