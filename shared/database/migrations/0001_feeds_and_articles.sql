-- The registry and state of every feed. The scheduler writes claim_*; the writer writes the rest of the state.
CREATE TABLE feeds (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    url text NOT NULL UNIQUE,
    name text,
    source_type text NOT NULL DEFAULT 'feed',
    source_config jsonb NOT NULL DEFAULT '{}',
    politeness_group text NOT NULL,
    priority integer NOT NULL DEFAULT 0,
    interval_seconds double precision CHECK (interval_seconds > 0),
    enabled boolean NOT NULL DEFAULT true,
    disabled_reason text,

    next_fetch_at timestamptz NOT NULL DEFAULT now(),
    claim_id uuid,
    claim_expires_at timestamptz,

    -- What a conditional request needs: verbatim, and only for the URL that gave it.
    etag text,
    last_modified text,
    validators_url text,
    body_hash text,
    cursor_at timestamptz,

    poll_seconds double precision,
    failures integer NOT NULL DEFAULT 0,
    last_attempt_at timestamptz,
    last_success_at timestamptz,
    last_new_at timestamptz,
    last_outcome text,
    last_error text,
    gone_since timestamptz,
    moved_to text,
    moved_since timestamptz,
    moved_sightings integer NOT NULL DEFAULT 0,

    title text,
    site_url text,
    language text,
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN feeds.interval_seconds IS 'Set by a person: poll exactly this often, without adaptation.';
COMMENT ON COLUMN feeds.poll_seconds IS 'The adaptive interval at present.';
COMMENT ON COLUMN feeds.cursor_at IS 'Newest publication time delivered so far.';

-- Serves the claim: enabled feeds, most urgent first.
CREATE INDEX feeds_due ON feeds (priority DESC, next_fetch_at, id) WHERE enabled;

-- The dedup ledger: one small row for every article ever seen.
CREATE TABLE feed_items (
    md5 text COLLATE "C" PRIMARY KEY,
    feed_id bigint NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    url text NOT NULL,
    updates integer NOT NULL DEFAULT 0,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL
);
COMMENT ON TABLE feed_items IS 'Survives its feed, so that a feed that is removed and added again brings nothing twice.';

-- The product. A row's presence means: pending.
CREATE TABLE pending_articles (
    md5 text COLLATE "C" PRIMARY KEY,
    feed_id bigint NOT NULL REFERENCES feeds ON DELETE CASCADE,
    entry_id text NOT NULL,
    url text NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    content_quality text NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    published_at timestamptz,
    updated_at timestamptz,
    author text,
    categories text[] NOT NULL DEFAULT '{}',
    enclosures jsonb NOT NULL DEFAULT '[]',
    language text,
    flags text[] NOT NULL DEFAULT '{}',
    revision integer NOT NULL DEFAULT 0,
    retry_count integer NOT NULL DEFAULT 0,
    claimed_until timestamptz,
    created_at timestamptz NOT NULL
);
CREATE INDEX pending_articles_created ON pending_articles (created_at, md5);
CREATE INDEX pending_articles_feed ON pending_articles (feed_id);

-- One row per attempt at a feed.
CREATE TABLE feed_fetch_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    result_id uuid NOT NULL UNIQUE,
    feed_id bigint NOT NULL REFERENCES feeds ON DELETE CASCADE,
    queued_at timestamptz NOT NULL,
    started_at timestamptz NOT NULL,
    elapsed_seconds double precision NOT NULL,
    ok boolean NOT NULL,
    outcome text NOT NULL,
    final boolean NOT NULL,
    attempt integer NOT NULL,
    status integer,
    items_seen integer NOT NULL,
    items_new integer NOT NULL,
    wire_bytes bigint NOT NULL,
    decoded_bytes bigint NOT NULL,
    tier text,
    error_class text,
    error text
);
CREATE INDEX feed_fetch_log_feed ON feed_fetch_log (feed_id, started_at DESC);
