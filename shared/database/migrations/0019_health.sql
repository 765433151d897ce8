-- How each feed is, in one word; and whether day or month stands first in its dates.
ALTER TABLE feeds
    ADD COLUMN failing_since timestamptz,
    ADD COLUMN moved_at timestamptz,
    ADD COLUMN duplicate_of bigint,
    ADD COLUMN ambiguous_since timestamptz,
    ADD COLUMN date_order text CHECK (date_order IN ('day', 'month')),
    ADD COLUMN date_order_seen text CHECK (date_order_seen IN ('day', 'month'));
COMMENT ON COLUMN feeds.failing_since IS 'The first failure since the last success; older writers leave it as it was.';
COMMENT ON COLUMN feeds.moved_at IS 'When a permanent redirect became the URL.';
COMMENT ON COLUMN feeds.duplicate_of IS 'The feed that has the same final URL, or brought first nearly all that this one lists.';
COMMENT ON COLUMN feeds.ambiguous_since IS 'Since when articles come whose date may be read in two ways.';
COMMENT ON COLUMN feeds.date_order IS 'Set by a person: what stands first in dates such as 03/04/2026.';
COMMENT ON COLUMN feeds.date_order_seen IS 'The same, as a date of the feed proved it that is possible in one order only.';

-- Serves the search for feeds that lead to one URL. Hash: a URL behind redirects may be longer than a B-tree takes.
CREATE INDEX feeds_redirected ON feeds USING hash (validators_url) WHERE validators_url <> url;

-- What is known of feeds so far.
UPDATE feeds SET failing_since = (
    SELECT min(started_at) FROM feed_fetch_log
    WHERE feed_id = feeds.id AND NOT ok AND outcome NOT IN ('throttled', 'stale', 'skipped')
        AND started_at > coalesce(feeds.last_success_at, '-infinity')
) WHERE enabled AND (failures > 0 OR last_outcome = 'soft_error');
UPDATE feeds SET duplicate_of = substring(disabled_reason FROM '^duplicate: .* feed (\d{1,18})$')::bigint
WHERE NOT enabled AND disabled_reason LIKE 'duplicate: %';
UPDATE feeds SET ambiguous_since = found.since FROM (
    SELECT feed_id, min(created_at) AS since FROM pending_articles WHERE 'date_ambiguous' = ANY (flags) GROUP BY feed_id
) AS found WHERE feeds.id = found.feed_id;

-- The first word that applies: what ended polling, what keeps articles away now, what nothing is known of yet, what a
-- person has to look at, what is going on, what is usual. services/admin/feed_health/rule.py says the same in sentences.
CREATE VIEW feed_words AS
SELECT feeds.id AS feed_id,
    CASE
        WHEN NOT feeds.enabled THEN CASE
            WHEN feeds.disabled_reason LIKE 'gone:%' THEN 'gone'
            WHEN feeds.disabled_reason LIKE 'duplicate:%' THEN 'duplicate'
            ELSE 'disabled'
        END
        WHEN feeds.gone_since IS NOT NULL THEN 'gone'
        WHEN feeds.failures > 0 OR feeds.last_outcome = 'soft_error' THEN 'failing'
        WHEN feeds.politeness_group IN (SELECT politeness_group FROM throttled_groups WHERE until > now())
            OR (feeds.last_outcome = 'throttled' AND feeds.next_fetch_at > now()) THEN 'throttled'
        WHEN feeds.last_success_at IS NULL THEN 'new'
        WHEN original.id IS NOT NULL THEN 'duplicate'
        WHEN silent_since < now() - 3 * gap THEN 'stale'
        WHEN feeds.ambiguous_since IS NOT NULL AND feeds.date_order IS NULL THEN 'dates_ambiguous'
        WHEN feeds.moved_to IS NOT NULL OR feeds.moved_at > now() - interval '7 days' THEN 'moved'
        WHEN silent_since < now() - gap THEN 'quiet'
        ELSE 'healthy'
    END AS word,
    feeds.enabled AND feeds.failures = 0 AND silent_since < now() - 3 * gap AS is_stale
FROM feeds
LEFT JOIN feeds AS original ON original.id = feeds.duplicate_of AND original.enabled
CROSS JOIN LATERAL (
    -- Until the usual gap is known, the newest article's date tells more than the day on which the feed was added.
    SELECT CASE
            WHEN feeds.news_gap_seconds IS NULL
                THEN least(coalesce(feeds.last_new_at, feeds.created_at), feeds.cursor_at)
            ELSE coalesce(feeds.last_new_at, feeds.created_at)
        END AS silent_since,
        least(greatest(coalesce(feeds.news_gap_seconds, 864000), 86400), 1e9) * interval '1 second' AS gap
) AS habit;
COMMENT ON VIEW feed_words IS 'Per feed: how it is, in one word.';

-- As before; what is stale goes by the usual gap as feed_words has it.
CREATE OR REPLACE VIEW feed_health AS
SELECT feeds.id AS feed_id,
    feeds.enabled,
    recent.attempts,
    recent.success_rate,
    recent.mean_seconds,
    feeds.failures,
    extract(epoch FROM now() - feeds.last_success_at)::double precision AS seconds_since_success,
    extract(epoch FROM now() - feeds.last_new_at)::double precision AS seconds_since_news,
    feeds.news_gap_seconds,
    feed_words.is_stale AS stale,
    feed_words.word
FROM feeds
JOIN feed_words ON feed_words.feed_id = feeds.id
CROSS JOIN LATERAL (
    SELECT count(*) AS attempts,
        avg(ok::int)::double precision AS success_rate,
        avg(elapsed_seconds) FILTER (WHERE ok) AS mean_seconds
    FROM feed_fetch_log
    WHERE feed_fetch_log.feed_id = feeds.id AND started_at > now() - interval '7 days'
) AS recent;
