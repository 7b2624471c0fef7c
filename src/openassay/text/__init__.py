"""Reading text without a model: sentences, words, names, passages, quantities, negation."""
