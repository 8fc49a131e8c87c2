"""Tools that look at tokenizers."""
