CREATE TABLE documents (
    hash TEXT PRIMARY KEY,
    metadata TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
