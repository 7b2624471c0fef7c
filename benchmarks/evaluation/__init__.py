"""How well OpenAssay does, in figures, on data that nobody here wrote: `python -m benchmarks.evaluation`."""
