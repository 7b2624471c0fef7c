"""Pointed questions: what they want, and the stretches of a text that may be it."""
