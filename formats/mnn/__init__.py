"""MNN tokenizer files.

A ``.mtok`` file (MNN tokenizer type 4) begins with a body that the MNN engine reads and may go on with anything:
the engine stops after its fifth tail section. This package writes the body; what stands behind it is the pack's affair.

Rules come from MNN tag 3.6.1 (``transformers/llm/engine/src/tokenizer/tokenizer.cpp`` and ``unicode.cpp``,
``transformers/llm/export/utils/tokenizer.py``) and from llama.cpp commit 0c1e570 (``src/llama-vocab.cpp``,
``src/unicode.cpp``).

* :mod:`~tokpack.formats.mnn.parts`, :mod:`~tokpack.formats.mnn.body`: the format as data, and its bytes;
* :mod:`~tokpack.formats.mnn.lower`: which data gives the ids of a tokenizer, with one module per model
  (``byte_pair``, ``score_merge``, ``word_piece``, ``unigram``) and one per hard part: ``specials``, ``patterns``,
  ``cuts`` (splits that only make it faster), ``char_map`` and ``charsmap``;
* ``hf`` and ``hf_*``: the same for tokenizers of the library ``tokenizers``, one module per part of a tokenizer.json;
* :mod:`~tokpack.formats.mnn.losses`: where the engine still gives something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokpack.findings import Finding
    from tokpack.ir import TokenizerIR

__all__ = ["write_body"]


def write_body(ir: TokenizerIR) -> tuple[bytes, list[Finding]]:
    """The bytes of a ``.mtok`` body for ``ir``, and what MNN will do otherwise than ``ir``'s reference.

    Raises:
        UnsupportedError: no body can be made for this kind of tokenizer.
        LossError: the format cannot hold it, or MNN would crash on it.
    """
    from .body import serialize
    from .lower import lower

    body, findings = lower(ir)
    return serialize(body), findings
