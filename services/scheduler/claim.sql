-- Claims due feeds: the highest priority first, then the first feed of each politeness group, the second of each, and
-- so on; among these the one that has been due for longest. The jobs of a group that are under way count, and a group
-- has at most `per_group`. Feeds that became due after `due_by`, if given, are left.
WITH RECURSIVE
-- The priorities in use: one look into the index for each.
priorities (priority) AS (
    SELECT max(priority) FROM feeds WHERE enabled
    UNION ALL
    SELECT (SELECT max(feeds.priority) FROM feeds WHERE enabled AND feeds.priority < above.priority)
    FROM priorities AS above
    WHERE above.priority IS NOT NULL
),
under_way AS MATERIALIZED (
    SELECT politeness_group, count(*) AS jobs
    FROM feeds
    WHERE issued_at IS NOT NULL AND claim_expires_at > now()
    GROUP BY politeness_group
),
-- Of each priority the longest due feeds, `span` at a time. If few groups dominate a span, look on behind them and past
-- them, until a span has many groups, or `looks` times; and in any case until there are enough usable feeds. Groups
-- that have their share, or are throttled, are passed over.
look (priority, goes_on, looks, usable, dominant, last_due_at, last_id, ids, groups, moments) AS (
    SELECT priority, true, 0, 0::bigint,
        ARRAY(
            SELECT politeness_group FROM under_way WHERE jobs >= %(per_group)s
            UNION
            SELECT politeness_group FROM throttled_groups WHERE until > now()
        ),
        '-infinity'::timestamptz, 0::bigint, NULL::bigint[], NULL::text[], NULL::timestamptz[]
    FROM priorities
    WHERE priority IS NOT NULL
    UNION ALL
    SELECT look.priority,
        seen.feeds = %(span)s
            AND (look.usable + seen.usable < %(limit)s OR (seen.is_dominated AND look.looks + 1 < %(looks)s)),
        look.looks + 1, look.usable + seen.usable, look.dominant || seen.dominant, seen.last_due_at, seen.last_id,
        seen.ids, seen.groups, seen.moments
    FROM look CROSS JOIN LATERAL (
        SELECT count(*) AS feeds, array_agg(id) AS ids, array_agg(politeness_group) AS groups,
            array_agg(due_at) AS moments,
            max(due_at) AS last_due_at, max(id) FILTER (WHERE due_at = latest) AS last_id,
            count(*) FILTER (WHERE jobs + nth <= %(per_group)s) AS usable,
            bool_or(of_group * 4 >= %(span)s) AS is_dominated,
            array_agg(DISTINCT politeness_group)
                FILTER (WHERE of_group * 4 >= %(span)s OR jobs + of_group >= %(per_group)s) AS dominant
        FROM (
            SELECT id, politeness_group, due_at, coalesce(jobs, 0) AS jobs,
                count(*) OVER (PARTITION BY politeness_group) AS of_group,
                row_number() OVER (PARTITION BY politeness_group) AS nth,
                max(due_at) OVER () AS latest
            FROM (
                SELECT id, politeness_group, due_at
                FROM feeds
                WHERE enabled AND priority = look.priority AND due_at <= least(now(), %(due_by)s)
                  AND (due_at, id) > (look.last_due_at, look.last_id)
                  AND politeness_group <> ALL (look.dominant)
                ORDER BY due_at, id
                LIMIT %(span)s
            ) AS longest_due
            LEFT JOIN under_way USING (politeness_group)
        ) AS counted
    ) AS seen
    WHERE look.goes_on
),
ordered_due AS (
    SELECT id, priority, due_at,
        row_number() OVER (PARTITION BY politeness_group ORDER BY priority DESC, due_at, id) + coalesce(jobs, 0) AS nth
    FROM look
    CROSS JOIN LATERAL unnest(ids, groups, moments) AS found (id, politeness_group, due_at)
    LEFT JOIN under_way USING (politeness_group)
),
-- Locked one by one in that order, until there are enough. Rows that a writer has locked are passed over. Feeds that
-- were claimed since the statement began are no longer due.
due AS (
    SELECT free.id, ordered.nth, ordered.due_at, free.claim_id
    FROM (SELECT * FROM ordered_due WHERE nth <= %(per_group)s ORDER BY priority DESC, nth, due_at, id) AS ordered
    CROSS JOIN LATERAL (
        SELECT id, claim_id
        FROM feeds
        WHERE feeds.id = ordered.id AND enabled AND feeds.due_at <= least(now(), %(due_by)s)
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS free
    LIMIT %(limit)s
)
UPDATE feeds
SET claim_id = gen_random_uuid(), claim_expires_at = now() + make_interval(secs => %(claim_seconds)s), issued_at = now()
FROM due
-- LIMIT: for each claimed feed one look by its id.
LEFT JOIN LATERAL (SELECT digests, full_at FROM feed_listings WHERE feed_id = due.id LIMIT 1) AS listing ON true
WHERE feeds.id = due.id
RETURNING feeds.id, url, source_type, source_config, etag, last_modified, validators_url, body_hash, cursor_at,
    politeness_group, priority, last_outcome, probed_at, lying_since, date_order, date_order_seen, feeds.claim_id,
    claim_expires_at, feeds.issued_at, due.nth, due.due_at AS was_due_at, due.claim_id IS NOT NULL AS had_expired,
    listing.digests, listing.full_at
