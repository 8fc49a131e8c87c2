"""Where each added token of ``tokenizers`` goes in a ``.mtok`` file.

``tokenizers`` (``tokenizer/added_vocabulary.rs``) looks for the leftmost, then longest token, in the raw text for most
and in the normalized text for those with ``normalized``. MNN 3.6.1 tries the ids of its header at each position, first
in the list first, and then the added tokens, leftmost then longest, in what is left; ``decode(list)`` drops the ids of
the header. So special tokens go into the header, the longest first, where MNN matches them there as they are, all
others into the added tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokpack.errors import Location
from tokpack.findings import Finding, Severity
from tokpack.ir import AddedToken as HfToken
from tokpack.ir import TokenizerIR
from tokpack.ir.steps import WordPieceDecoder

from .parts import AddedToken
from .specials import Placement, shown

__all__ = ["place_added"]


def place_added(ir: TokenizerIR, stored: Sequence[bytes]) -> Placement:
    """Header and added tokens; ``stored`` are the pieces as the body spells them."""
    result = Placement()
    spaced = any(isinstance(step, WordPieceDecoder) for step in ir.decoder)
    tokens = sorted(ir.added_tokens, key=lambda token: -len(token.content))
    header = [token for token in tokens if token.special and _plain(ir, token, stored, spaced=spaced)]
    chosen = {token.id for token in header}
    # A special text inside a longer other one: stage 1 would cut the inner one out.
    texts = b"\0".join(token.content for token in tokens if token.id not in chosen)
    header = [token for token in header if token.content not in texts]
    result.header = [token.id for token in header]
    # With BERT's decoder stage 1 finds a token behind a space only, so that stage 2 has to look as well.
    later = tokens if spaced else [token for token in tokens if token.id not in set(result.header)]
    result.added = [
        AddedToken(token.id, token.content, special=token.special, lstrip=token.lstrip, rstrip=token.rstrip)
        for token in later
        if b"\0" not in token.content
    ]
    result.findings = _losses(ir, tokens, set(result.header))
    return result


def _plain(ir: TokenizerIR, token: HfToken, stored: Sequence[bytes], *, spaced: bool) -> bool:
    """Whether stage 1 finds the token's text and nothing else."""
    if token.lstrip or token.rstrip or b"\0" in token.content:
        return False
    return spaced or shown(stored[token.id], ir.alphabet.kind) == token.content


def _losses(ir: TokenizerIR, tokens: Sequence[HfToken], header: set[int]) -> list[Finding]:
    where = Location(None, "added_tokens")
    findings = []

    def lose(code: str, severity: Severity, chosen: Sequence[HfToken], what: str) -> None:
        if chosen:
            message = f"{len(chosen)} added tokens, such as id {chosen[0].id}, {what}"
            findings.append(Finding(code, severity, message, where))

    single = [token for token in tokens if token.single_word]
    lose("mtok-single-word", Severity.IDS, single, "are single words: MNN finds them inside of words too")
    normal = [token for token in tokens if token.normalized] if ir.normalizer else []
    what = "are looked for in the normalized text: MNN looks for all in the raw text"
    lose("mtok-normalized-token", Severity.IDS, normal, what)
    strip = [token for token in tokens if token.lstrip or token.rstrip]
    what = "take white space with them: MNN strips ASCII white space only"
    lose("mtok-strip-token", Severity.IDS, strip, what)
    kept = [token for token in tokens if token.special and token.id not in header]
    what = "are special, but MNN could not match them in its header: its decoding of a list does not leave them out"
    lose("mtok-special-shown", Severity.TEXT, kept, what)
    if header and _overlap(tokens):
        message = (
            "special tokens can overlap in a text: tokenizers takes the one that starts first, MNN any of its header "
            "before others"
        )
        findings.append(Finding("mtok-special-overlap", Severity.IDS, message, where))
    return findings


def _overlap(tokens: Sequence[HfToken]) -> bool:
    """Whether the end of a token is the beginning of another one, of which one may be in the header."""
    ends = {token.content[at:] for token in tokens for at in range(1, min(len(token.content), 256))}
    return any(token.content[:at] in ends for token in tokens for at in range(1, min(len(token.content), 256)))
