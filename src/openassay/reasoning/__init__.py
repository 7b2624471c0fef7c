"""The two reasoners behind one protocol: a language model, and rules that need none."""
