"""Runs worked on by processes of their own: a queue in the database, and workers that take runs up from it.

The table of runs is the truth. A job is only a knock at the door: one too many does no harm, and one that was lost is
made good (docs/decisions/0025-jobs-are-knocks.md).
"""
