-- What /api/health/pipeline, /api/stats and /api/hosts count by.

-- What the new articles of an attempt are like: pending articles, which say it too, go as they are drained. Null: an older
-- writer wrote the row.
ALTER TABLE feed_fetch_log
    ADD COLUMN items_dated integer,
    ADD COLUMN items_full integer,
    ADD COLUMN items_duplicate integer;
COMMENT ON COLUMN feed_fetch_log.items_dated IS 'New articles whose date the feed gives, neither guessed nor corrected.';
COMMENT ON COLUMN feed_fetch_log.items_full IS 'New articles with their whole text (content_quality).';
COMMENT ON COLUMN feed_fetch_log.items_duplicate IS 'New articles that came before under another address.';

-- Attempts that brought something, few of all. Counting articles by time reads only this index.
CREATE INDEX feed_fetch_log_new ON feed_fetch_log (started_at)
INCLUDE (items_new, items_dated, items_full, items_duplicate, tier) WHERE items_new > 0;

-- Hosts by name, and the feeds of a host.
CREATE INDEX feeds_host ON feeds (politeness_group);

-- Runs of `feedmill batch`, the last thousand: they leave nothing else behind when they end.
CREATE TABLE batch_runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    finished_at timestamptz NOT NULL DEFAULT now(),
    seconds double precision NOT NULL,
    summary jsonb NOT NULL
);
COMMENT ON COLUMN batch_runs.summary IS 'The counts of the run, as `feedmill batch --json` prints them.';
