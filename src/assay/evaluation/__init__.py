"""How well Assay does, in figures, on data that nobody here wrote: `assay eval`."""
