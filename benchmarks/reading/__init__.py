"""Whether readers who do not know which is which prefer a report of OpenAssay to one from plain BM25; see README.md."""
