-- The tables of postgres/0006: here the bytes of uploads, and what people want remembered, stand in files.
CREATE TABLE memories (
    owner TEXT NOT NULL,
    place TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (owner, place, key)
) STRICT;

CREATE TABLE chunks (
    upload TEXT NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    content BLOB NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (upload, number)
) STRICT;

CREATE TABLE deleted (
    run TEXT PRIMARY KEY,
    time TEXT NOT NULL,
    seal TEXT NOT NULL
) STRICT;
