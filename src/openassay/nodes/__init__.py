"""The nodes of the graph, in the files of those they are read with:

understand   clarify, understand          verify     verify
plan         gate, question, plan         approve    approve_plan, approve_harvest and the other breakpoints
dispatch     dispatch                     write      write
search       search                       review     review
harvest      fuse, harvest, select        publish    publish, fallback
read         read                         withdraw   withdraw, which takes sources out of a report
analyse      consolidate, analyse

What several nodes share stands beside them: preferences, failures and report.
"""
