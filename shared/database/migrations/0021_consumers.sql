-- What the pages show of consumers and of stories.

-- Articles of one story: the rows of the ledger that name the first one. Few rows have one, and none changes it in an
-- update of `last_seen_at`.
CREATE INDEX feed_items_story ON feed_items (duplicate_of) WHERE duplicate_of IS NOT NULL;

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- A row for each call that did something; writers add them up every few minutes. Rows are only appended: one to update
-- would be waited for, or have thousands of versions while a long transaction keeps vacuum away. No index, no write-ahead
-- log: a crash of the server takes the counts of the last minutes, and nothing else.
CREATE TABLE consumer_calls (
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    consumer text COLLATE "C" NOT NULL DEFAULT left(coalesce(
        nullif(current_setting('feedmill.consumer', true), ''),
        concat_ws(', ', nullif(current_setting('application_name'), ''), session_user)
    ), 200) CHECK (length(consumer) <= 200),
    kind text COLLATE "C" NOT NULL,
    articles integer NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE consumer_calls SET UNLOGGED;
COMMENT ON TABLE consumer_calls IS 'What consumers did since the writers last added it up: claimed, acknowledged, failed, released, expired.';
COMMENT ON COLUMN consumer_calls.consumer IS 'feedmill.consumer, which the API sets; else application and user of the connection.';
-- The functions below run with the rights of consumers, whose roles were made before there was this table.
GRANT INSERT ON consumer_calls TO PUBLIC;

CREATE TABLE consumer_minutes (
    minute timestamptz NOT NULL,
    consumer text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    articles bigint NOT NULL,
    PRIMARY KEY (minute, consumer, kind)
);
COMMENT ON TABLE consumer_minutes IS 'consumer_calls, added up by the minute, of the last days.';

-- As before, with the counts.
CREATE OR REPLACE FUNCTION claim_pending_articles(
    max_articles integer, lease interval DEFAULT '5 minutes', max_expiries integer DEFAULT 5
) RETURNS SETOF pending_articles
LANGUAGE plpgsql ROWS 50
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    moment CONSTANT timestamptz := clock_timestamp();  -- now() may lie hours back
    claim_id CONSTANT uuid := gen_random_uuid();
    suspicious CONSTANT integer := 2;
    candidate record;
    spent text[];
    chosen text[] := '{}';
    alone boolean := false;
    expired integer := 0;
BEGIN
    IF max_articles IS NULL OR max_articles < 0 OR max_expiries IS NULL OR lease IS NULL OR lease <= interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'claim_pending_articles: max_articles must not be negative, lease must be positive, none null';
    END IF;

    -- What came back goes first: it is older than what nobody has seen. Usually there is none.
    LOOP
        spent := '{}';
        FOR candidate IN
            SELECT md5, expiries + (lease_id IS NOT NULL)::integer AS expiries, (lease_id IS NOT NULL)::integer AS expired
            FROM pending_articles
            WHERE claimed_until <= moment
            ORDER BY claimed_until, created_at, md5
            LIMIT max_articles
            FOR UPDATE SKIP LOCKED
        LOOP
            IF candidate.expiries >= max_expiries THEN
                spent := spent || candidate.md5;
                expired := expired + candidate.expired;
            ELSIF candidate.expiries < suspicious THEN
                chosen := chosen || candidate.md5;
                expired := expired + candidate.expired;
            ELSE
                -- Its consumers went silent twice. If it is the article that kills them, those that were claimed with
                -- it are innocent: so it goes alone, and the others get through.
                alone := chosen = '{}';
                IF alone THEN
                    chosen := ARRAY[candidate.md5];
                    expired := expired + candidate.expired;
                END IF;
                EXIT;
            END IF;
        END LOOP;
        EXIT WHEN spent = '{}';
        PERFORM bury_articles(spent, format('lease expired %s times', max_expiries));
        EXIT WHEN chosen <> '{}';
    END LOOP;

    IF NOT alone AND cardinality(chosen) < max_articles THEN
        chosen := chosen || ARRAY(
            SELECT md5 FROM pending_articles
            WHERE claimed_until IS NULL
            ORDER BY created_at, md5
            LIMIT max_articles - cardinality(chosen)
            FOR UPDATE SKIP LOCKED
        );
    END IF;
    IF expired > 0 THEN
        INSERT INTO consumer_calls (consumer, kind, articles) VALUES ('', 'expired', expired);  -- whose they were is not known
    END IF;
    IF chosen = '{}' THEN
        RETURN;
    END IF;
    INSERT INTO consumer_calls (kind, articles) VALUES ('claimed', cardinality(chosen));

    RETURN QUERY
    WITH claimed AS (
        UPDATE pending_articles
        SET lease_id = claim_id,
            claimed_until = moment + lease,
            claimed_hash = content_hash,
            expiries = expiries + (lease_id IS NOT NULL)::integer
        WHERE md5 = ANY(chosen)
        RETURNING *
    )
    SELECT * FROM claimed ORDER BY created_at, md5;
END
$$;

CREATE OR REPLACE FUNCTION ack_articles(md5s text[], content_hashes text[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    removed integer;
BEGIN
    PERFORM FROM pending_articles WHERE md5 = ANY(md5s) ORDER BY md5 FOR UPDATE;
    -- The work is done, whoever holds the lease by now: unless it was done on a text that has changed since.
    DELETE FROM pending_articles AS article
    USING unnest(md5s, content_hashes) AS done (md5, content_hash)
    WHERE article.md5 = done.md5
        AND article.content_hash = coalesce(done.content_hash, article.claimed_hash, article.content_hash);
    GET DIAGNOSTICS removed = ROW_COUNT;
    IF removed > 0 THEN
        INSERT INTO consumer_calls (kind, articles) VALUES ('acknowledged', removed);
    END IF;
    IF removed = cardinality(md5s) THEN
        RETURN removed;
    END IF;
    -- The new text is given out at once. claimed_hash stays: a second try of this call must not remove the new text.
    UPDATE pending_articles AS article
    SET claimed_until = clock_timestamp(), lease_id = NULL
    FROM unnest(md5s, content_hashes) AS done (md5, content_hash)
    WHERE article.md5 = done.md5
        AND article.lease_id IS NOT NULL
        AND article.claimed_hash = coalesce(done.content_hash, article.claimed_hash)
        AND article.claimed_hash <> article.content_hash;
    RETURN removed;
END
$$;

CREATE OR REPLACE FUNCTION fail_articles(
    md5s text[], error text, lease_ids uuid[] DEFAULT NULL, max_failures integer DEFAULT 5,
    retry_after interval DEFAULT NULL
) RETURNS TABLE (md5 text, retry_count integer, retry_at timestamptz)
LANGUAGE plpgsql ROWS 10
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    failed record;
    counted integer := 0;
    spent text[] := '{}';
BEGIN
    PERFORM FROM pending_articles WHERE md5 = ANY(md5s) ORDER BY md5 FOR UPDATE;
    FOR failed IN
        -- Pauses: 1, 5, 25, 125 minutes, then 6 hours. What has no lease was failed or released already (this may be
        -- the second try of the call), unless it was never claimed.
        UPDATE pending_articles AS article
        SET retry_count = article.retry_count + 1,
            claimed_until = clock_timestamp() + coalesce(
                retry_after, least(interval '1 minute' * power(5, least(article.retry_count, 8)), interval '6 hours')),
            lease_id = NULL,
            last_error = left(coalesce(error, ''), 1000)
        WHERE article.md5 = ANY(md5s)
            AND CASE
                WHEN lease_ids IS NULL THEN article.lease_id IS NOT NULL OR article.claimed_until IS NULL
                ELSE article.lease_id = ANY(lease_ids)
            END
        RETURNING article.md5, article.retry_count, article.claimed_until
    LOOP
        counted := counted + 1;
        md5 := failed.md5;
        retry_count := failed.retry_count;
        retry_at := failed.claimed_until;
        IF failed.retry_count >= max_failures THEN
            spent := spent || failed.md5;
            retry_at := NULL;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF counted > 0 THEN
        INSERT INTO consumer_calls (kind, articles) VALUES ('failed', counted);
    END IF;
    IF spent <> '{}' THEN
        PERFORM bury_articles(spent, error);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION release_articles(md5s text[], lease_ids uuid[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    released integer;
BEGIN
    PERFORM FROM pending_articles WHERE md5 = ANY(md5s) ORDER BY md5 FOR UPDATE;
    UPDATE pending_articles SET claimed_until = clock_timestamp(), lease_id = NULL
    WHERE md5 = ANY(md5s) AND lease_id = ANY(coalesce(lease_ids, ARRAY[lease_id]));
    GET DIAGNOSTICS released = ROW_COUNT;
    IF released > 0 THEN
        INSERT INTO consumer_calls (kind, articles) VALUES ('released', released);
    END IF;
    RETURN released;
END
$$;
