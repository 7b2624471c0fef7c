-- Documents that no thread used when somebody last looked, and since when. Whoever reads one takes its mark away; one
-- that has kept it long enough goes. It is no part of what was written, so it has no seal.
CREATE TABLE unused_documents (
    hash TEXT PRIMARY KEY,
    since TEXT NOT NULL
) STRICT;
