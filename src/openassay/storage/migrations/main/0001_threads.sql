CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL
) STRICT;

CREATE INDEX threads_by_updated ON threads (updated);

CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    question TEXT NOT NULL,
    status TEXT NOT NULL,
    stage TEXT NOT NULL,
    started TEXT NOT NULL,
    finished TEXT,
    settings TEXT NOT NULL,
    options TEXT NOT NULL,
    error TEXT
) STRICT;

CREATE INDEX runs_by_thread ON runs (thread, started);

CREATE UNIQUE INDEX one_active_run_per_thread ON runs (thread)
WHERE status IN ('queued', 'running', 'waiting');
