-- What the claim needs, and what a feed's pace and health are judged by.
ALTER TABLE feeds
    ADD COLUMN issued_at timestamptz,
    ADD COLUMN due_at timestamptz GENERATED ALWAYS AS (greatest(next_fetch_at, claim_expires_at)) STORED;
COMMENT ON COLUMN feeds.issued_at IS 'When the job was claimed that nothing has been heard of yet; else null.';
COMMENT ON COLUMN feeds.due_at IS 'From here on the feed may be claimed: its time has come, and no claim on it is alive.';

-- Serves the claim: within a priority the longest due first, those under way not among them.
DROP INDEX feeds_due;
CREATE INDEX feeds_due ON feeds (priority, due_at, id) INCLUDE (politeness_group) WHERE enabled;
-- How many jobs of a group are under way.
CREATE INDEX feeds_issued ON feeds (politeness_group) INCLUDE (claim_expires_at) WHERE issued_at IS NOT NULL;

-- Each fetch makes two new versions of a feed's row: the old ones must go before the head of feeds_due fills with them.
ALTER TABLE feeds SET (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);
