-- Claims feeds that are due: the highest priority first, within it politeness groups in turn, within a turn the one
-- that has been due for longest. A group's turns are counted from the jobs of it that are under way already, and it
-- has `per_group` of them at most. What has become due after `due_by`, if that is given, is left.
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
-- Of each priority the longest due, `span` at a time. Where few groups fill that, they are a crowd that others may
-- stand behind: look on, past them, until a span has many groups, or after a while; and in any case until there are
-- enough that a group's share leaves room for. Groups that have their share, or asked to be left alone, are passed over.
look (priority, goes_on, looks, usable, crowds, last_due_at, last_id, ids, groups, moments) AS (
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
            AND (look.usable + seen.usable < %(limit)s OR (seen.is_crowded AND look.looks + 1 < %(looks)s)),
        look.looks + 1, look.usable + seen.usable, look.crowds || seen.crowds, seen.last_due_at, seen.last_id,
        seen.ids, seen.groups, seen.moments
    FROM look CROSS JOIN LATERAL (
        SELECT count(*) AS feeds, array_agg(id) AS ids, array_agg(politeness_group) AS groups,
            array_agg(due_at) AS moments,
            max(due_at) AS last_due_at, max(id) FILTER (WHERE due_at = latest) AS last_id,
            count(*) FILTER (WHERE jobs + nth <= %(per_group)s) AS usable,
            bool_or(of_group * 4 >= %(span)s) AS is_crowded,
            array_agg(DISTINCT politeness_group)
                FILTER (WHERE of_group * 4 >= %(span)s OR jobs + of_group >= %(per_group)s) AS crowds
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
                  AND politeness_group <> ALL (look.crowds)
                ORDER BY due_at, id
                LIMIT %(span)s
            ) AS longest_due
            LEFT JOIN under_way USING (politeness_group)
        ) AS counted
    ) AS seen
    WHERE look.goes_on
),
turns AS (
    SELECT id, priority, due_at,
        row_number() OVER (PARTITION BY politeness_group ORDER BY priority DESC, due_at, id) + coalesce(jobs, 0) AS turn
    FROM look
    CROSS JOIN LATERAL unnest(ids, groups, moments) AS found (id, politeness_group, due_at)
    LEFT JOIN under_way USING (politeness_group)
),
-- Locked one by one in that order, until there are enough. What a writer holds at the moment is passed over, and what
-- was claimed since the statement began is seen to be claimed.
due AS (
    SELECT free.id, ordered.turn, ordered.due_at, free.claim_id
    FROM (SELECT * FROM turns WHERE turn <= %(per_group)s ORDER BY priority DESC, turn, due_at, id) AS ordered
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
WHERE feeds.id = due.id
RETURNING feeds.id, url, source_type, source_config, etag, last_modified, validators_url, body_hash, cursor_at,
    politeness_group, priority, last_outcome, probed_at, lying_since, feeds.claim_id, claim_expires_at, feeds.issued_at,
    due.turn, due.due_at AS was_due_at, due.claim_id IS NOT NULL AS had_expired
