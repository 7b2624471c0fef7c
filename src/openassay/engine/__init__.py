"""Threads as a whole, above the runner of single runs.

beginnings  a question that becomes a run, on a thread of its own or as a follow-up
archive     looked through, taken out as one file, deleted, forgotten in their time
history     the moments of a thread, and its state at each
branches    going on from a moment with something changed; changes says what a change means
vetoes      sources taken out of a report for good
resumption  going on from the last good checkpoint, or put aside for whoever will
takeover    runs of other processes: asked to stop, and taken up when their process is gone
watch       sources of a report fetched again, to see what has changed
"""
