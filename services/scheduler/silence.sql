-- How many feeds are due, for how long the longest has been, and for how long no attempt has succeeded though some feed
-- wanted to be fetched: it is due, in flight, waits for its retry, in back-off after a failure, or its host asked it to
-- wait. What fails quickly is hardly ever due, so the fetch log is asked as well.
WITH RECURSIVE priorities (priority) AS (
    -- One look into the index for each priority.
    SELECT max(priority) FROM feeds WHERE enabled
    UNION ALL
    SELECT (SELECT max(feeds.priority) FROM feeds WHERE enabled AND feeds.priority < above.priority)
    FROM priorities AS above
    WHERE above.priority IS NOT NULL
),
due AS (
    SELECT coalesce(sum(found.feeds), 0) AS feeds, min(found.oldest) AS oldest
    FROM priorities CROSS JOIN LATERAL (
        SELECT count(*) AS feeds, min(due_at) AS oldest
        FROM feeds
        WHERE enabled AND priority = priorities.priority AND due_at <= now()
    ) AS found
),
-- A fetcher whose clock is fast must not silence the alarm.
last_success (at) AS (
    SELECT coalesce(
        (SELECT started_at FROM feed_fetch_log WHERE ok AND started_at <= now() ORDER BY started_at DESC LIMIT 1),
        '-infinity'
    )
),
-- The first sign that somebody works since then. Feeds that were due before it are those of a pause: after a start they
-- are no silence.
resumed (at) AS (
    SELECT least(
        (SELECT min(issued_at) FROM feeds WHERE enabled AND issued_at IS NOT NULL),
        (
            SELECT started_at FROM feed_fetch_log
            WHERE NOT ok AND started_at BETWEEN last_success.at AND now() ORDER BY started_at LIMIT 1
        )
    )
    FROM last_success
    WHERE last_success.at < now() - interval '1 minute'
),
-- A feed that had failed for days when others still succeeded is broken, and tells nothing of the others. While the last
-- success is fresh there is no silence, and nobody looks on.
wanting AS MATERIALIZED (
    SELECT least(
        (SELECT greatest(due.oldest, resumed.at) FROM due CROSS JOIN resumed WHERE due.oldest IS NOT NULL),
        (SELECT min(issued_at) FROM feeds WHERE enabled AND issued_at IS NOT NULL),
        (
            SELECT last_attempt_at FROM feeds
            WHERE enabled AND (failures > 0 OR last_outcome = 'throttled' OR (claim_id IS NOT NULL AND issued_at IS NULL))
              AND last_attempt_at <= now()
              AND NOT (failures >= 3 AND coalesce(last_success_at, created_at) < last_success.at - interval '2 days')
            ORDER BY last_attempt_at LIMIT 1
        ),
        (
            SELECT log.started_at FROM feed_fetch_log AS log JOIN feeds ON feeds.id = log.feed_id
            WHERE NOT log.ok AND log.started_at BETWEEN last_success.at AND now() AND enabled
              AND NOT (failures >= 3 AND coalesce(last_success_at, created_at) < last_success.at - interval '2 days')
            ORDER BY log.started_at LIMIT 1
        ),
        (
            -- It was in trouble at the last success already, has been tried since, and still is. Where more than these
            -- fail, some others do that were not yet.
            SELECT last_success.at
            FROM (
                SELECT feed_id, started_at FROM feed_fetch_log
                WHERE NOT ok AND started_at BETWEEN last_success.at - interval '1 day' AND last_success.at
                ORDER BY started_at DESC LIMIT 1000
            ) AS log JOIN feeds ON feeds.id = log.feed_id
            WHERE enabled AND coalesce(last_success_at < log.started_at, true)
              AND NOT (failures >= 3 AND coalesce(last_success_at, created_at) < last_success.at - interval '2 days')
            LIMIT 1
        )
    ) AS since
    FROM last_success
    WHERE last_success.at < now() - interval '1 minute'
)
SELECT due.feeds::int AS due,
    coalesce(extract(epoch FROM now() - due.oldest), 0)::float8 AS longest_due,
    coalesce(
        (SELECT greatest(0, extract(epoch FROM now() - greatest(last_success.at, wanting.since)))
         FROM wanting CROSS JOIN last_success
         WHERE wanting.since IS NOT NULL),
        0
    )::float8 AS silence,
    coalesce(
        (SELECT extract(epoch FROM now() - nullif(last_success.at, '-infinity')) FROM last_success), 'infinity'
    )::float8 AS success_age
FROM due
