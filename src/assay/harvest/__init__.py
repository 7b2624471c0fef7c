"""Turning files and pages into clean text: untrusted bytes in, sanitised documents out.

files.py        a person's own files, found by walk.py             ports.FileReader
web.py          pages of the open web                              ports.Pages
visits.py       one page fetched as a good guest does; kept.py and freshness.py: what need not be fetched again
fetching/       the guarded client, robots.txt, politeness, and a browser behind a guarded proxy
workshop.py     the processes in which pages are read (worker.py), bounded in time and memory
formats.py      what a body is; charset.py: in which characters
html/ pdf/      the two large formats; docx.py, tabular.py and text.py: the others
extracted.py    what a reader gives; reflow.py and rows.py: paragraphs and tables made whole
given.py        a file that somebody has uploaded
quality.py      how much a text reads like content
"""
