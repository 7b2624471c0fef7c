"""The nouns of Assay as frozen data. Everything here is plain, serialisable and free of I/O."""
