-- Folders that were indexed, for every machine to search. All of it can be made again from the files.
-- Paths are UTF-8 with surrogates passed through: a file name need not be text.
CREATE TABLE libraries (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    root BYTEA NOT NULL UNIQUE,
    machine TEXT NOT NULL, -- that has looked through the folder last, and when
    updated TEXT NOT NULL,
    kept BIGINT NOT NULL DEFAULT 0, -- somebody wants it to stay when no thread asks it any more
    passages BIGINT NOT NULL DEFAULT 0,
    words BIGINT NOT NULL DEFAULT 0, -- of all passages together
    model TEXT -- that the vectors are of
);

CREATE TABLE library_documents (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    library BIGINT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (library, hash)
);

-- Metadata stand with the file: two files of the same text share a document, not a url.
CREATE TABLE library_files (
    library BIGINT NOT NULL REFERENCES libraries (id) ON DELETE CASCADE,
    path BYTEA NOT NULL,
    size BIGINT NOT NULL,
    mtime_ns BIGINT NOT NULL,
    hash TEXT,
    metadata TEXT,
    PRIMARY KEY (library, path)
);

CREATE INDEX library_files_by_hash ON library_files (library, hash, path);

-- `words` are stems, each with its library's number before it: so words of other folders cost a question nothing.
-- A stem has as many positions as the passage has of it, and two for each in the title.
CREATE TABLE library_passages (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document BIGINT NOT NULL REFERENCES library_documents (id) ON DELETE CASCADE,
    "start" INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    size INTEGER NOT NULL, -- in words, with those of the title
    counted INTEGER NOT NULL, -- for how many passages it stands in library_words
    text TEXT NOT NULL,
    words TSVECTOR NOT NULL
);

-- A row stays in one piece, unpacked: thousands are scored for a question.
ALTER TABLE library_passages SET (toast_tuple_target = 8160);

ALTER TABLE library_passages ALTER COLUMN words SET STORAGE EXTERNAL;

CREATE INDEX library_passages_by_document ON library_passages (document);

-- New passages wait in a list of 32 MiB, which is put in order as a whole. The server's work for 96,000 passages:
--   each put in its place at once    60 s
--   a list of 4 MiB, the usual       24 s
--   a list of 64 MiB                 12 s
--   no index until all are there     11 s, but the folders of others would be without one
CREATE INDEX library_passages_by_words ON library_passages USING gin (words)
WITH (fastupdate = on, gin_pending_list_limit = 32768);

-- In how many passages a word stands.
CREATE TABLE library_words (
    word TEXT COLLATE "C" PRIMARY KEY,
    passages BIGINT NOT NULL
) WITH (fillfactor = 70);
