-- Who may do what: people, their tokens (as hashes), and links that show one thread to whoever has them.
CREATE TABLE users (
    name TEXT PRIMARY KEY,
    created TEXT NOT NULL,
    usd DOUBLE PRECISION,
    requests_per_minute BIGINT,
    disabled BIGINT NOT NULL,
    seal TEXT NOT NULL
);

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    label TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created TEXT NOT NULL,
    expires TEXT,
    revoked TEXT,
    seal TEXT NOT NULL
);

CREATE TABLE shares (
    id TEXT PRIMARY KEY,
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    hash TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL,
    expires TEXT NOT NULL,
    revoked TEXT,
    seal TEXT NOT NULL
);

-- Sources a person wants to keep in sight.
CREATE TABLE pins (
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    document TEXT NOT NULL,
    created TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, document)
);

-- Tables and texts that came of a thread, with every version a person has made of them.
CREATE TABLE artifacts (
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    created TEXT NOT NULL,
    author TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (thread, name, version)
);

-- Files people have given; what they hold stands in the data directory.
CREATE TABLE uploads (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    media TEXT NOT NULL,
    size BIGINT NOT NULL,
    hash TEXT NOT NULL,
    created TEXT NOT NULL,
    seal TEXT NOT NULL
);

CREATE INDEX uploads_by_owner ON uploads (owner, created);

CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    events TEXT NOT NULL,
    created TEXT NOT NULL,
    seal TEXT NOT NULL
);

CREATE INDEX webhooks_by_owner ON webhooks (owner, created);

-- What has ended or was asked since somebody was told last.
CREATE INDEX runs_by_finished ON runs (finished);

CREATE INDEX reviews_by_opened ON reviews (opened);

-- What is to be told to somebody's address, until it was, or until it was tried often enough.
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    webhook TEXT NOT NULL,
    body TEXT NOT NULL,
    created TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    due TEXT,
    delivered TEXT,
    error TEXT NOT NULL,
    seal TEXT NOT NULL
);

CREATE INDEX deliveries_by_due ON deliveries (due);

CREATE INDEX deliveries_by_webhook ON deliveries (webhook, created);

-- What was answered to a request with an Idempotency-Key: the same request gets the same answer.
CREATE TABLE replies (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    status BIGINT NOT NULL,
    body TEXT NOT NULL,
    created TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE INDEX replies_by_created ON replies (created);

-- Conversations of chat front ends, which send all of what was said each time, and the thread that each became.
CREATE TABLE chats (
    said TEXT NOT NULL,
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    created TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (said, thread)
);
