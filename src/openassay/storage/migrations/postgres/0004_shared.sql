-- What processes share quickly and can do without. Unlogged: it costs the disk little, and is empty after a crash.
CREATE UNLOGGED TABLE cache_entries (
    key BYTEA PRIMARY KEY,
    expires TIMESTAMPTZ NOT NULL,
    used TIMESTAMPTZ NOT NULL,
    size BIGINT NOT NULL,
    value BYTEA NOT NULL
);

-- Values are packed before they come here.
ALTER TABLE cache_entries ALTER COLUMN value SET STORAGE EXTERNAL;

CREATE INDEX cache_entries_by_expiry ON cache_entries (expires);

CREATE INDEX cache_entries_by_use ON cache_entries (used, key) INCLUDE (size);

CREATE UNLOGGED TABLE cache_counters (
    key BYTEA PRIMARY KEY,
    value BIGINT NOT NULL,
    expires TIMESTAMPTZ NOT NULL
);

CREATE INDEX cache_counters_by_expiry ON cache_counters (expires);

-- Buckets of tokens: one row for a person or a provider. `taken` is whether the last who came got one.
CREATE UNLOGGED TABLE rates (
    name TEXT PRIMARY KEY,
    level DOUBLE PRECISION NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    taken BOOLEAN NOT NULL
);
