-- Who works on which thread, and until when that holds without another sign of life. All times are this server's. Whoever
-- has a row keeps it while the token is theirs; whoever gives a thread back deletes it. It is no part of what was written,
-- so it has no seal.
CREATE TABLE leases (
    thread TEXT PRIMARY KEY,
    token BIGINT NOT NULL,
    holder TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    falls BIGINT NOT NULL
);

CREATE SEQUENCE leases_token AS BIGINT OWNED BY leases.token;
