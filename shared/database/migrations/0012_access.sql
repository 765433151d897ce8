-- Who may do what over HTTP, and who did what. Secrets are stored as SHA-256: they are random, so a slow hash would
-- protect nothing more.
CREATE TABLE api_tokens (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    prefix text NOT NULL,
    secret_hash bytea NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0 AND scopes <@ '{read,write,consume,admin}'),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);
COMMENT ON COLUMN api_tokens.prefix IS 'The first characters of the token, by which people recognise it.';

CREATE TABLE api_sessions (
    secret_hash bytea PRIMARY KEY CHECK (octet_length(secret_hash) = 32),
    token_id bigint NOT NULL REFERENCES api_tokens ON DELETE CASCADE,
    csrf text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE api_sessions IS 'Logins of browsers; a session may do what its token may, as long as the token is good.';

-- Every change that a person or a program made, in the transaction that made it.
CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    actor text NOT NULL,
    token_id bigint,
    action text NOT NULL,
    target text,
    details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_log_at ON audit_log (at, id);
COMMENT ON COLUMN audit_log.actor IS 'The token''s name and prefix, or `command` with the user of the machine.';

-- The answers to creations that were sent with an Idempotency-Key.
CREATE TABLE idempotency_keys (
    token_id bigint NOT NULL,
    key text NOT NULL CHECK (length(key) <= 255),
    request_hash bytea NOT NULL,
    status integer,
    headers jsonb NOT NULL DEFAULT '{}',
    body bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);
COMMENT ON COLUMN idempotency_keys.token_id IS '0: the command line.';
