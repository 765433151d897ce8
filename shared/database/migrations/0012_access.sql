-- Who may do what over HTTP, and who did what. Secrets are stored as SHA-256: they are random, so a slow hash would
-- protect nothing more.
CREATE TABLE api_tokens (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    prefix text NOT NULL,
    secret_hash bytea NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0 AND scopes <@ '{read,write,consume,admin}'),
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (name) WHERE revoked_at IS NULL;
COMMENT ON COLUMN api_tokens.prefix IS 'The first characters of the token, by which people recognise it.';

CREATE TABLE api_sessions (
    secret_hash bytea PRIMARY KEY CHECK (octet_length(secret_hash) = 32),
    token_id bigint NOT NULL REFERENCES api_tokens ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX api_sessions_token ON api_sessions (token_id);
CREATE INDEX api_sessions_expiry ON api_sessions (expires_at);
COMMENT ON TABLE api_sessions IS 'Logins of browsers; a session may do what its token may, as long as the token is good.';

-- Every change that a person or a program made, in the transaction that made it.
CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    actor text NOT NULL,
    token_id bigint,
    address text,
    action text NOT NULL,
    target text,
    details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_log_at ON audit_log (at, id);
CREATE INDEX audit_log_actor ON audit_log (actor, at, id);
CREATE INDEX audit_log_action ON audit_log (action, at, id);
CREATE INDEX audit_log_target ON audit_log (target, at, id);
COMMENT ON COLUMN audit_log.address IS 'Where the request came from; null: the command.';
COMMENT ON COLUMN audit_log.actor IS 'The token''s name and prefix, or `command` with the user of the machine.';

-- The answers to creations that were sent with an Idempotency-Key.
CREATE TABLE idempotency_keys (
    token_id bigint NOT NULL,
    key text NOT NULL CHECK (length(key) <= 255),
    request_hash bytea NOT NULL,
    run uuid NOT NULL,
    locked_until timestamptz NOT NULL,
    status integer,
    headers jsonb NOT NULL DEFAULT '{}',
    body bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);
COMMENT ON COLUMN idempotency_keys.token_id IS '0: the command line, or an API that is open.';
COMMENT ON COLUMN idempotency_keys.run IS 'The request that makes the answer.';
COMMENT ON COLUMN idempotency_keys.locked_until IS 'While there is no answer: until when its request may take. Then it died.';
