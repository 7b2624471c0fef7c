"""The nodes of the graph, each in a file of its name, in the order of the pipeline:

understand clarify gate question plan approve dispatch search fuse harvest select read consolidate analyse verify
write review publish fallback; and withdraw, which takes sources out of a report

What several nodes share stands beside them: preferences, failures, report and standards.
"""
