-- Nothing here refers to runs: what was spent stays in the books when a thread is deleted.
CREATE TABLE accounts (
    run TEXT PRIMARY KEY,
    cap_micros INTEGER NOT NULL,
    cap_tokens INTEGER NOT NULL,
    cap_requests INTEGER NOT NULL,
    finish_share REAL NOT NULL,
    -- Booked and reserved together; kept by the triggers below.
    micros INTEGER NOT NULL DEFAULT 0 CHECK (micros >= 0),
    tokens INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    requests INTEGER NOT NULL DEFAULT 0 CHECK (requests >= 0),
    refused INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One line for each attempt; the last line of a key is the one that counts.
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    run TEXT NOT NULL REFERENCES accounts (run),
    time TEXT NOT NULL,
    expires REAL NOT NULL,
    step TEXT NOT NULL,
    task TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    research INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'sent', 'settled', 'lost', 'void')),
    -- What the line takes from its account as it stands: the worst case, then what was charged.
    micros INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    requests INTEGER NOT NULL DEFAULT 1,
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    confirmed INTEGER NOT NULL DEFAULT 1,
    answer TEXT,
    error TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX calls_by_key ON calls (key);

CREATE INDEX calls_by_task ON calls (run, task);

CREATE INDEX open_calls ON calls (run, expires) WHERE state IN ('reserved', 'sent');

CREATE TRIGGER call_made AFTER INSERT ON calls BEGIN
    UPDATE accounts SET
        micros = micros + NEW.micros, tokens = tokens + NEW.tokens, requests = requests + NEW.requests
    WHERE run = NEW.run;
END;

CREATE TRIGGER call_changed AFTER UPDATE OF micros, tokens, requests ON calls BEGIN
    UPDATE accounts SET
        micros = micros + NEW.micros - OLD.micros,
        tokens = tokens + NEW.tokens - OLD.tokens,
        requests = requests + NEW.requests - OLD.requests
    WHERE run = NEW.run;
END;

-- The money stays in the books, what was said goes with the thread.
CREATE TRIGGER answers_go_with_their_run AFTER DELETE ON runs BEGIN
    UPDATE calls SET answer = NULL WHERE run = OLD.id;
END;
