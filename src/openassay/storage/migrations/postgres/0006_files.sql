-- What people want remembered, where several machines do the remembering.
CREATE TABLE memories (
    owner TEXT NOT NULL,
    place TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (owner, place, key)
);

-- The bytes of uploads, which every machine must be able to read. EXTERNAL: files are compressed already, or encrypted.
CREATE TABLE chunks (
    upload TEXT NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    content BYTEA NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (upload, number)
);

ALTER TABLE chunks ALTER COLUMN content SET STORAGE EXTERNAL;

-- Runs that went with their thread: each machine removes the journal it may have of one.
CREATE TABLE deleted (
    run TEXT PRIMARY KEY,
    time TEXT NOT NULL,
    seal TEXT NOT NULL
);
