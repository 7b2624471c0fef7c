"""All thinking goes through one protocol; `embedded` needs no language model."""
