-- Every row carries a seal over what it holds; `heads` sums up the seals of all rows that belong together, so that a row
-- which is missing, was exchanged or was put back is noticed. See docs/explanation/durability.md.
CREATE TABLE heads (
    scope TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    members INTEGER NOT NULL,
    total TEXT NOT NULL,
    seal TEXT NOT NULL
) STRICT;

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

ALTER TABLE threads ADD COLUMN owner TEXT NOT NULL DEFAULT 'local';

ALTER TABLE threads ADD COLUMN seal TEXT NOT NULL DEFAULT '';

CREATE INDEX threads_by_owner ON threads (owner, updated);

ALTER TABLE runs ADD COLUMN stop TEXT NOT NULL DEFAULT '';

ALTER TABLE runs ADD COLUMN seal TEXT NOT NULL DEFAULT '';

ALTER TABLE events ADD COLUMN seal TEXT NOT NULL DEFAULT '';

ALTER TABLE documents ADD COLUMN seal TEXT NOT NULL DEFAULT '';

ALTER TABLE reviews ADD COLUMN seal TEXT NOT NULL DEFAULT '';

-- What an account has used is counted from its calls: a sum kept by triggers could not be sealed.
DROP TRIGGER call_made;

DROP TRIGGER call_changed;

DROP TRIGGER answers_go_with_their_run;

ALTER TABLE accounts DROP COLUMN micros;

ALTER TABLE accounts DROP COLUMN tokens;

ALTER TABLE accounts DROP COLUMN requests;

-- Whose money it is, also when the thread is gone.
ALTER TABLE accounts ADD COLUMN owner TEXT NOT NULL DEFAULT 'local';

ALTER TABLE accounts ADD COLUMN seal TEXT NOT NULL DEFAULT '';

CREATE INDEX accounts_by_owner ON accounts (owner);

ALTER TABLE calls ADD COLUMN seal TEXT NOT NULL DEFAULT '';

-- These hold all that the sums need: a reservation on a run of 2,000 calls takes 1.2 ms with them, 3 ms without.
DROP INDEX calls_by_task;

CREATE INDEX calls_by_task ON calls (run, task, research, micros, tokens, requests);

DROP INDEX open_calls;

CREATE INDEX open_calls ON calls (run, expires, micros, tokens, requests) WHERE state IN ('reserved', 'sent');

CREATE INDEX paid_calls ON calls (run, time, micros) WHERE micros > 0;

-- A branch is a thread that began as a copy of another one, at one of its checkpoints.
CREATE TABLE branches (
    thread TEXT PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    parent TEXT NOT NULL,
    checkpoint TEXT NOT NULL,
    changes TEXT NOT NULL,
    created TEXT NOT NULL,
    seal TEXT NOT NULL
) STRICT;

CREATE INDEX branches_by_parent ON branches (parent);

-- Nothing here refers to threads: LangGraph may keep what it likes under a name of its own.
CREATE TABLE checkpoints (
    thread TEXT NOT NULL,
    ns TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT,
    run TEXT NOT NULL,
    time TEXT NOT NULL,
    metadata TEXT NOT NULL,
    payload BLOB NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, ns, id)
) STRICT;

-- Values of the state too large for a checkpoint, by the hash of what they hold.
CREATE TABLE parts (
    thread TEXT NOT NULL,
    hash TEXT NOT NULL,
    payload BLOB NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, hash)
) STRICT;

-- What tasks brought since a checkpoint; without a channel, all of a task's results in one row.
CREATE TABLE writes (
    thread TEXT NOT NULL,
    ns TEXT NOT NULL,
    checkpoint TEXT NOT NULL,
    task TEXT NOT NULL,
    idx INTEGER NOT NULL,
    path TEXT NOT NULL,
    channel TEXT NOT NULL,
    payload BLOB NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, ns, checkpoint, task, idx)
) STRICT;

-- What checkpoints refer to: results of searches, reports and whatever else grows with the pages read.
CREATE TABLE notes (
    thread TEXT NOT NULL,
    name TEXT NOT NULL,
    content BLOB NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, name)
) STRICT;

-- Which snapshots a thread rests on: one that no thread uses any more goes with the last.
CREATE TABLE used_documents (
    thread TEXT NOT NULL,
    document TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, document)
) STRICT;

CREATE INDEX used_documents_by_document ON used_documents (document);
