"""Decoders, and what ``tokenizers`` puts around a text, in a ``.mtok`` file."""

from __future__ import annotations

from tokpack.errors import Location
from tokpack.findings import Finding, Severity
from tokpack.ir import TokenizerIR
from tokpack.ir import steps as ir_steps
from tokpack.ir.patterns import Dialect

from .parts import (
    ByteFallbackDecoder,
    ByteLevelDecoder,
    Decoder,
    FuseDecoder,
    MetaspaceDecoder,
    ReplaceDecoder,
    StripDecoder,
    WordPieceDecoder,
)

__all__ = ["Around", "lower_around", "lower_decoder", "not_kept"]

Around = tuple[tuple[int, ...], tuple[int | None, ...]]


def lower_decoder(ir: TokenizerIR) -> tuple[tuple[Decoder, ...], list[Finding]]:
    """The decoder chain; never empty, because MNN reads that as ByteLevel."""
    steps: list[Decoder] = []
    lost: list[str] = []
    for step in ir.decoder:
        found = _decoder(step)
        if found is None:
            lost.append(step.kind)
        else:
            steps.append(found)
        if isinstance(step, ir_steps.BpeDecoder):
            lost.append("the end of the last token")
    findings = []
    where = Location(None, "decoder")
    if not ir.decoder:
        message = "without a decoder tokenizers puts a space between tokens, MNN nothing"
        findings.append(Finding("mtok-decoder", Severity.TEXT, message, where))
    elif lost:
        message = f"MNN's decoding of a list has no form for: {', '.join(lost)}"
        findings.append(Finding("mtok-decoder", Severity.TEXT, message, where))
    if any(isinstance(step, ir_steps.WordPieceDecoder) and not step.cleanup for step in ir.decoder):
        message = "MNN always removes spaces before . ? ! and , after the WordPiece decoder"
        findings.append(Finding("mtok-clean-spaces", Severity.TEXT, message, where))
    return tuple(steps) or (FuseDecoder(),), findings


def _decoder(step: ir_steps.DecoderStep) -> Decoder | None:
    if isinstance(step, ir_steps.ByteLevelDecoder):
        return ByteLevelDecoder()
    if isinstance(step, ir_steps.ByteFallbackDecoder):
        return ByteFallbackDecoder()
    if isinstance(step, ir_steps.FuseDecoder):
        return FuseDecoder()
    if isinstance(step, ir_steps.MetaspaceDecoder):
        return MetaspaceDecoder(step.replacement, step.prepend_scheme != "never")
    if isinstance(step, ir_steps.WordPieceDecoder):
        return WordPieceDecoder(step.prefix, step.cleanup)
    if isinstance(step, ir_steps.StripDecoder):
        return StripDecoder(step.content, min(step.start, 1), min(step.stop, 1))
    if isinstance(step, ir_steps.BpeDecoder):
        return ReplaceDecoder(step.suffix, " ") if step.suffix else None
    if isinstance(step, ir_steps.Replace) and step.dialect is Dialect.LITERAL and step.pattern:
        return ReplaceDecoder(step.pattern, step.content)
    return None


def lower_around(ir: TokenizerIR) -> tuple[Around, list[Finding]]:
    """Prefix ids, and the program of engines after 3.6.1, which run it on the ids with the prefix.

    What stands before the text is the prefix alone: in the program too, it would come twice in those engines.
    """
    post = ir.post_processor
    if not isinstance(post, ir_steps.Template):
        return ((), ()), []
    where = Location(None, "post_processor")
    places = [at for at, item in enumerate(post.single) if item.sequence is not None]
    findings = []
    if len(places) != 1:
        message = f"the template has the text {len(places)} times; MNN gives it once, with nothing around it"
        return ((), ()), [Finding("mtok-template", Severity.IDS, message, where)]
    size = len(ir.vocab)
    if any(number >= size for item in post.single for number in item.ids):
        message = "the template adds ids that no token has; MNN adds nothing"
        return ((), ()), [Finding("mtok-template", Severity.IDS, message, where)]
    prefix = tuple(number for item in post.single[: places[0]] for number in item.ids)
    suffix = tuple(number for item in post.single[places[0] + 1 :] for number in item.ids)
    if prefix:
        message = f"MNN puts {', '.join(map(str, prefix))} before every text, and cannot be asked not to"
        findings.append(Finding("mtok-prefix", Severity.INFO, message, where))
    if suffix:
        message = (
            f"MNN 3.6.1 puts nothing after a text: {', '.join(map(str, suffix))} is missing (later engines read it "
            "from the file)"
        )
        findings.append(Finding("mtok-add-eos", Severity.IDS, message, where))
    if post.pair:
        message = "the body has no template for pairs of texts, and no type ids"
        findings.append(Finding("mtok-pair", Severity.INFO, message, where))
    return (prefix, (None, *suffix) if suffix else ()), findings


def not_kept(ir: TokenizerIR) -> list[Finding]:
    """Facts that have no place in the body; the index keeps them."""
    findings = []
    for key in ("truncation", "padding"):
        if key in ir.extras:
            message = f"the body has no field for {key}"
            findings.append(Finding(f"mtok-{key}", Severity.INFO, message, Location(None, key)))
    message = "MNN keeps invalid UTF-8 as bytes; it matches no added token across a NUL"
    findings.append(Finding("mtok-text-limits", Severity.INFO, message))
    return findings
