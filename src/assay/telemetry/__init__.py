"""What is told of Assay while it works: its log, its figures, its traces, and whether all that it needs is there.

Runs are told from their events alone (docs/decisions/0029-telemetry-from-events.md), so that a server, a worker and the
command line tell the same.
"""
