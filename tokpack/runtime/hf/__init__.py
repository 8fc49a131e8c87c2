"""The pipeline of the ``tokenizers`` library 0.23.3, stage by stage, from a pack.

Rules and their sources: huggingface/tokenizers 0.23.3, ``tokenizers/src``; each module names its file there.
"""
