"""Text → ids and back by the rules of MNN's engine (``transformers/llm/engine/src/tokenizer`` of MNN tag 3.6.1)."""
