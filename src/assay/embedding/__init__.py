"""Sentence vectors on the CPU: the MiniLM model shipped with the package, and a cache of what it computed."""

from assay.embedding.minilm import MiniLM
from assay.embedding.vectors import CachedEmbedder

__all__ = ["CachedEmbedder", "MiniLM"]
