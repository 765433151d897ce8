-- URLs of FEEDMILL_SEED_FILE that were loaded once: what a person removes stays removed.
CREATE TABLE seeded_feeds (
    url text PRIMARY KEY,
    seeded_at timestamptz NOT NULL DEFAULT now()
);
