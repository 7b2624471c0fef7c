"""Runs of this process: what they work with, the way of one through the graph, its life from start to end, and all of
them together."""
