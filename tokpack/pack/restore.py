"""Index → IR: the way back, for conversion from a pack."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from tokpack.errors import FormatError, Location
from tokpack.findings import Finding
from tokpack.ir import (
    BPE,
    AddedToken,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    Model,
    Reference,
    Source,
    SpecialId,
    Specials,
    TokenizerIR,
    Vocab,
)
from tokpack.ir.codec import check_types, step_from_plain
from tokpack.ir.steps import Precompiled, SentencePieceDecoder, SentencePieceNormalizer
from tokpack.pack import layout
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView

__all__ = ["restore"]

_MODELS: dict[str, Any] = {cls.kind: cls for cls in get_args(Model) if cls is not BPE}


def restore(view: PackView) -> TokenizerIR:
    """The IR of a pack: equal to the one it was built from, except that ``findings`` come back without a file name.

    Raises FormatError when the index is damaged.
    """
    try:
        return _restore(view)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        what = f"the index is damaged: {type(error).__name__}: {error}"
        raise FormatError(what, location=Location(view.file), hint="convert the tokenizer again") from error


def _restore(view: PackView) -> TokenizerIR:
    meta, about = view.meta, view.about()
    pieces = PieceTable(view)
    for name in ("piece.offset", "added.offset"):
        # else the texts together could be far larger than the file
        offset = np.frombuffer(view.raw(name), dtype="<u4")
        if (offset[1:] < offset[:-1]).any():
            raise pieces.damaged(name, "the offsets do not ascend")
    for name in ("chat_templates", "extras"):
        if not isinstance(about[name], dict) or not all(isinstance(key, str) for key in about[name]):
            raise pieces.damaged("about", f"{name} is no map of names")
    if not all(isinstance(text, str) for text in about["chat_templates"].values()):
        raise pieces.damaged("about", "a chat template is no text")
    facts = about["source"]["facts"]
    if not isinstance(facts, dict) or not all(
        isinstance(key, str) and isinstance(value, (str, int, float)) for key, value in facts.items()
    ):
        raise pieces.damaged("about", "the facts of the source are no map of names to plain values")
    post = meta["post_processor"]
    ir = TokenizerIR(
        reference=Reference(meta["reference"]),
        rules=meta["rules"],
        unicode=meta["unicode"],
        vocab=_vocab(view, pieces),
        alphabet=check_types(Alphabet(AlphabetKind(meta["alphabet"]), meta["byte_fallback"])),
        model=_model(view, pieces),
        matching=Matching(MatchingRule(meta["matching"])),
        normalizer=tuple(_normalizer_step(view, step) for step in meta["normalizer"]),
        pre_tokenizer=tuple(step_from_plain(step) for step in meta["pre_tokenizer"]),
        decoder=tuple(_decoder_step(view, step) for step in meta["decoder"]),
        post_processor=None if post is None else step_from_plain(post),
        added_tokens=_added(view),
        specials=_specials(meta, about["origins"]),
        chat_templates=about["chat_templates"],
        source=check_types(Source(about["source"]["format"], facts)),
        extras=about["extras"],
        findings=tuple(Finding.from_dict(item) for item in about["findings"]),
    )
    checked: TokenizerIR = check_types(ir)
    return checked


def _specials(meta: Any, origins: Any) -> Specials:
    roles = {role: check_types(SpecialId(token, origins[role])) for role, token in meta["specials"].items()}
    checked: Specials = check_types(Specials(roles, tuple(meta["eog"]), tuple(meta["suppress"])))
    return checked


def _vocab(view: PackView, pieces: PieceTable) -> Vocab:
    single, double = view.raw("piece.scores"), view.raw("piece.scores64")
    scores: Any = None
    if len(double):
        scores = np.frombuffer(double, dtype="<f8").astype(np.float64)
    elif len(single):
        scores = np.frombuffer(single, dtype="<f4").astype(np.float32)
    return Vocab(
        tuple(None if pieces.is_hole(i) else pieces.text(i) for i in range(pieces.size)),
        np.frombuffer(view.raw("piece.types"), dtype=np.uint8).copy(),
        np.frombuffer(view.raw("piece.attrs"), dtype="<u2").astype(np.uint16),
        scores,
    )


def _model(view: PackView, pieces: PieceTable) -> Model:
    plain: dict[str, Any] = dict(view.meta["model"])
    kind = plain.pop("kind")
    if kind != "BPE":
        made: Model = check_types(_MODELS[kind](**plain))
        return made
    keys = np.frombuffer(view.raw("merge.key"), dtype="<u8")
    rank = np.frombuffer(view.raw("merge.rank"), dtype="<u4")
    by_rank = np.empty(len(keys), dtype=np.uint64)
    by_rank[rank] = keys
    texts = [pieces.text(i) for i in range(pieces.symbols)]
    left, right = (by_rank >> np.uint64(32)).tolist(), (by_rank & np.uint64(0xFFFFFFFF)).tolist()
    source_rank = view.array("merge.source_rank")
    return check_types(  # type: ignore[no-any-return]
        BPE(
            merges=tuple((texts[a], texts[b]) for a, b in zip(left, right, strict=True)),
            ranks=tuple(source_rank) if len(source_rank) else None,
            **plain,
        )
    )


def _normalizer_step(view: PackView, plain: dict[str, Any]) -> Any:
    if plain["kind"] in (Precompiled.kind, SentencePieceNormalizer.kind):
        plain = {**plain, "charsmap": bytes(view.raw("charsmap"))}
    return step_from_plain(plain)


def _decoder_step(view: PackView, plain: dict[str, Any]) -> Any:
    if plain["kind"] == SentencePieceDecoder.kind:
        plain = {**plain, "charsmap": bytes(view.raw("decoder.charsmap"))}
    return step_from_plain(plain)


def _added(view: PackView) -> tuple[AddedToken, ...]:
    ids, flags, offset = view.array("added.id"), view.raw("added.flags"), view.array("added.offset")
    blob = view.raw("added.blob")
    return tuple(
        AddedToken(
            ids[i],
            bytes(blob[offset[i] : offset[i + 1]]),
            special=bool(flags[i] & layout.SPECIAL),
            normalized=bool(flags[i] & layout.NORMALIZED),
            single_word=bool(flags[i] & layout.SINGLE_WORD),
            lstrip=bool(flags[i] & layout.LSTRIP),
            rstrip=bool(flags[i] & layout.RSTRIP),
        )
        for i in range(len(ids))
    )
