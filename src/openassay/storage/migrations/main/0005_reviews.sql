-- What was said for the thread; NULL: what the settings say.
ALTER TABLE threads ADD COLUMN mode TEXT;

CREATE TABLE reviews (
    id TEXT PRIMARY KEY,
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    question TEXT NOT NULL,
    opened TEXT NOT NULL,
    due TEXT,
    on_timeout TEXT NOT NULL,
    answered TEXT,
    answer TEXT,
    "by" TEXT,
    CHECK ((answered IS NULL) = ("by" IS NULL))
) STRICT;

CREATE INDEX reviews_by_thread ON reviews (thread);

CREATE INDEX open_reviews ON reviews (due, opened) WHERE answered IS NULL;
