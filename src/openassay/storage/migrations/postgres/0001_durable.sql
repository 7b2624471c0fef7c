-- The tables of migrations/main as its sixth step left them. Everywhere a `rowid` tells the order of insertion.
CREATE TABLE heads (
    scope TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    members BIGINT NOT NULL,
    total TEXT NOT NULL,
    seal TEXT NOT NULL
);

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE threads (
    rowid BIGINT GENERATED ALWAYS AS IDENTITY,
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    mode TEXT,
    owner TEXT NOT NULL DEFAULT 'local',
    seal TEXT NOT NULL
);

CREATE INDEX threads_by_updated ON threads (updated);

CREATE INDEX threads_by_owner ON threads (owner, updated);

CREATE TABLE runs (
    rowid BIGINT GENERATED ALWAYS AS IDENTITY,
    id TEXT PRIMARY KEY,
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    question TEXT NOT NULL,
    status TEXT NOT NULL,
    stage TEXT NOT NULL,
    started TEXT NOT NULL,
    finished TEXT,
    settings TEXT NOT NULL,
    options TEXT NOT NULL,
    error TEXT,
    stop TEXT NOT NULL DEFAULT '',
    seal TEXT NOT NULL
);

CREATE INDEX runs_by_thread ON runs (thread, started);

CREATE UNIQUE INDEX one_active_run_per_thread ON runs (thread)
WHERE status IN ('queued', 'running', 'waiting');

CREATE TABLE events (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    stage TEXT NOT NULL,
    parent BIGINT,
    data TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE documents (
    hash TEXT PRIMARY KEY,
    metadata TEXT NOT NULL,
    text TEXT NOT NULL,
    seal TEXT NOT NULL
);

-- Nothing here refers to runs: what was spent stays in the books when a thread is deleted.
CREATE TABLE accounts (
    run TEXT PRIMARY KEY,
    cap_micros BIGINT NOT NULL,
    cap_tokens BIGINT NOT NULL,
    cap_requests BIGINT NOT NULL,
    finish_share DOUBLE PRECISION NOT NULL,
    refused BIGINT NOT NULL DEFAULT 0,
    owner TEXT NOT NULL,
    seal TEXT NOT NULL
);

CREATE INDEX accounts_by_owner ON accounts (owner);

-- One line for each attempt; the last line of a key is the one that counts.
CREATE TABLE calls (
    id BIGINT PRIMARY KEY,
    key TEXT NOT NULL,
    run TEXT NOT NULL REFERENCES accounts (run),
    time TEXT NOT NULL,
    expires DOUBLE PRECISION NOT NULL,
    step TEXT NOT NULL,
    task TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    research BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'sent', 'settled', 'lost', 'void')),
    -- What the line takes from its account as it stands: the worst case, then what was charged.
    micros BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    requests BIGINT NOT NULL DEFAULT 1,
    prompt_tokens BIGINT NOT NULL DEFAULT 0,
    completion_tokens BIGINT NOT NULL DEFAULT 0,
    seconds DOUBLE PRECISION NOT NULL DEFAULT 0,
    confirmed BIGINT NOT NULL DEFAULT 1,
    answer TEXT,
    error TEXT NOT NULL DEFAULT '',
    seal TEXT NOT NULL
);

CREATE SEQUENCE calls_id AS BIGINT OWNED BY calls.id;

CREATE INDEX calls_by_key ON calls (key);

CREATE INDEX calls_by_task ON calls (run, task, research, micros, tokens, requests);

CREATE INDEX open_calls ON calls (run, expires, micros, tokens, requests) WHERE state IN ('reserved', 'sent');

CREATE INDEX paid_calls ON calls (run, time, micros) WHERE micros > 0;

CREATE TABLE reviews (
    rowid BIGINT GENERATED ALWAYS AS IDENTITY,
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
    seal TEXT NOT NULL,
    CHECK ((answered IS NULL) = ("by" IS NULL))
);

CREATE INDEX reviews_by_thread ON reviews (thread);

CREATE INDEX open_reviews ON reviews (due, opened) WHERE answered IS NULL;

-- A branch is a thread that began as a copy of another one, at one of its checkpoints.
CREATE TABLE branches (
    thread TEXT PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    parent TEXT NOT NULL,
    checkpoint TEXT NOT NULL,
    changes TEXT NOT NULL,
    created TEXT NOT NULL,
    seal TEXT NOT NULL
);

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
    payload BYTEA NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, ns, id)
);

-- Values of the state too large for a checkpoint, by the hash of what they hold.
CREATE TABLE parts (
    thread TEXT NOT NULL,
    hash TEXT NOT NULL,
    payload BYTEA NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, hash)
);

-- What tasks brought since a checkpoint; without a channel, all of a task's results in one row.
CREATE TABLE writes (
    thread TEXT NOT NULL,
    ns TEXT NOT NULL,
    checkpoint TEXT NOT NULL,
    task TEXT NOT NULL,
    idx BIGINT NOT NULL,
    path TEXT NOT NULL,
    channel TEXT NOT NULL,
    payload BYTEA NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, ns, checkpoint, task, idx)
);

-- What checkpoints refer to: results of searches, reports and whatever else grows with the pages read.
CREATE TABLE notes (
    thread TEXT NOT NULL,
    name TEXT NOT NULL,
    content BYTEA NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, name)
);

-- Which snapshots a thread rests on: one that no thread uses any more goes with the last.
CREATE TABLE used_documents (
    thread TEXT NOT NULL,
    document TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, document)
);

CREATE INDEX used_documents_by_document ON used_documents (document);
