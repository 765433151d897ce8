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

-- What a feed's pace is chosen by (services/writer/pace.py), and the rate in it, for people.
ALTER TABLE feeds
    ADD COLUMN pace jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN items_per_day double precision;
COMMENT ON COLUMN feeds.items_per_day IS 'New articles that a day of this feed is expected to bring.';

-- Validators that lie: a server that answers 304 though there is something new.
ALTER TABLE feeds
    ADD COLUMN probed_at timestamptz,
    ADD COLUMN lying_since timestamptz;
COMMENT ON COLUMN feeds.probed_at IS 'Last poll that left the validators out on purpose, to see whether 304 had been true.';
COMMENT ON COLUMN feeds.lying_since IS '304 was found to be untrue: one poll a day leaves the validators out.';

-- Health: how a feed has fared, and whether it is stale (it answers well, and nothing new comes).
ALTER TABLE feeds ADD COLUMN news_gap_seconds double precision;
COMMENT ON COLUMN feeds.news_gap_seconds IS 'Usual time between two polls that bring something new (smoothed).';
CREATE INDEX feed_fetch_log_ok ON feed_fetch_log (started_at) WHERE ok;

CREATE VIEW feed_health AS
SELECT feeds.id AS feed_id,
    feeds.enabled,
    recent.attempts,
    recent.success_rate,
    recent.mean_seconds,
    feeds.failures,
    extract(epoch FROM now() - feeds.last_success_at)::double precision AS seconds_since_success,
    extract(epoch FROM now() - feeds.last_new_at)::double precision AS seconds_since_news,
    feeds.news_gap_seconds,
    feeds.enabled AND feeds.failures = 0
        AND extract(epoch FROM now() - feeds.last_new_at) > 3 * greatest(feeds.news_gap_seconds, 86400) AS stale
FROM feeds
CROSS JOIN LATERAL (
    SELECT count(*) AS attempts,
        avg(ok::int)::double precision AS success_rate,
        avg(elapsed_seconds) FILTER (WHERE ok) AS mean_seconds
    FROM feed_fetch_log
    WHERE feed_fetch_log.feed_id = feeds.id AND started_at > now() - interval '7 days'
) AS recent;
COMMENT ON VIEW feed_health IS 'Per feed: the last 7 days of the fetch log, failures in a row, freshness, staleness.';

-- What the feed itself asks for, and what a person sets for it alone.
ALTER TABLE feeds
    ADD COLUMN skip_hours smallint[] NOT NULL DEFAULT '{}',
    ADD COLUMN skip_days smallint[] NOT NULL DEFAULT '{}',
    ADD COLUMN shortest_seconds double precision CHECK (shortest_seconds > 0),
    ADD COLUMN longest_seconds double precision CHECK (longest_seconds > 0);
COMMENT ON COLUMN feeds.skip_hours IS 'skipHours of the body that was read last: UTC, 0 to 23.';
COMMENT ON COLUMN feeds.skip_days IS 'skipDays of the body that was read last: UTC, Monday is 0.';
COMMENT ON COLUMN feeds.shortest_seconds IS 'Set by a person: bounds the adaptive interval in place of FEEDMILL_MIN_POLL_SECONDS.';
COMMENT ON COLUMN feeds.longest_seconds IS 'Set by a person: bounds the adaptive interval in place of FEEDMILL_MAX_POLL_SECONDS.';
COMMENT ON COLUMN feeds.poll_seconds IS 'How long the next poll was thought to be able to wait, before jitter and floors.';

-- Hosts that asked to be left alone (429 with Retry-After): no feed of theirs is claimed before that, whoever restarts.
CREATE TABLE throttled_groups (
    politeness_group text PRIMARY KEY,
    until timestamptz NOT NULL
);
