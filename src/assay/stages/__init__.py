"""One node of the graph per file, in the order of the pipeline:

understand clarify gate question plan approve dispatch search fuse read consolidate analyse verify write review
publish fallback
"""
