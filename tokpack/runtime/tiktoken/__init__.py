"""Text → ids and back by the rules of tiktoken."""
