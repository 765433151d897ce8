-- The consumers' side of pending_articles: claim, acknowledge, fail, and the articles that nobody can digest.

-- Each function below names things in the schema where the tables are, whatever its caller's search_path says.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- The indexes first, and on columns that are there already: building them reads the whole table under a lock that stops
-- the writer (its results wait in the queue) and nobody who reads. What locks readers out comes after it and is a matter
-- of milliseconds: columns that are null or constant rewrite nothing.
--
-- Articles that nobody was ever given, in the order in which they are given out. A claim takes a row out of this index,
-- so that what is under way is not passed over by the next.
CREATE INDEX pending_articles_fresh ON pending_articles (created_at, md5) WHERE claimed_until IS NULL;
-- Articles that were given to somebody, by when they come back.
CREATE INDEX pending_articles_back ON pending_articles (claimed_until, created_at, md5) WHERE claimed_until IS NOT NULL;
DROP INDEX pending_articles_created;

ALTER TABLE pending_articles
    ADD COLUMN lease_id uuid,
    ADD COLUMN claimed_hash text COLLATE "C",
    ADD COLUMN expiries integer NOT NULL DEFAULT 0,
    ADD COLUMN last_error text;
COMMENT ON TABLE pending_articles IS 'A row''s presence means: pending.';
COMMENT ON COLUMN pending_articles.claimed_until IS 'Nobody is given the article before: a lease on it (lease_id) or, without one, the pause after a failure. Null: never given out.';
COMMENT ON COLUMN pending_articles.lease_id IS 'The claim that the article is, or was last, in the hands of; null once it was failed or released.';
COMMENT ON COLUMN pending_articles.claimed_hash IS 'content_hash of the text that was last given out.';
COMMENT ON COLUMN pending_articles.revision IS 'Grows with every change of the text.';
COMMENT ON COLUMN pending_articles.retry_count IS 'Failures that consumers have reported of this text.';
COMMENT ON COLUMN pending_articles.expiries IS 'Leases on this text that ran out unanswered.';

-- Every drained article leaves two dead rows: at the default (a fifth of the table) the first pages of both indexes fill
-- with them, and each claim would walk over all of these.
ALTER TABLE pending_articles SET (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05
);

-- No reference to feeds: what is in here is kept until a person decides, also if the feed is removed.
CREATE TABLE dead_articles (
    md5 text COLLATE "C" PRIMARY KEY,
    feed_id bigint NOT NULL,
    entry_id text NOT NULL,
    url text NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    html text,
    content_quality text NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    published_at timestamptz,
    updated_at timestamptz,
    author text,
    categories text[] NOT NULL,
    enclosures jsonb NOT NULL,
    language text,
    flags text[] NOT NULL,
    duplicate_of text COLLATE "C",
    revision integer NOT NULL,
    retry_count integer NOT NULL,
    expiries integer NOT NULL,
    created_at timestamptz NOT NULL,
    error text NOT NULL,
    failed_at timestamptz NOT NULL
);
CREATE INDEX dead_articles_failed ON dead_articles (failed_at, md5);
COMMENT ON TABLE dead_articles IS 'Articles that no consumer could digest, with the reason; revive_articles makes them pending again.';

-- All that lock several rows and wait for them do so in the order of md5, as the writer does: none can deadlock. They are
-- in plpgsql, statement by statement, since in READ COMMITTED each statement then sees what the locks were waited for.
-- Plans are made for each call: a session would keep a sequential scan from when the table was nearly empty, and a plan
-- for any LIMIT is one for a tenth of the table.

CREATE FUNCTION bury_articles(md5s text[], reason text) RETURNS integer
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    buried integer;
BEGIN
    PERFORM FROM pending_articles WHERE md5 = ANY(md5s) ORDER BY md5 FOR UPDATE;
    WITH gone AS (
        DELETE FROM pending_articles WHERE md5 = ANY(md5s) RETURNING *
    )
    INSERT INTO dead_articles AS dead (md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash,
        published_at, updated_at, author, categories, enclosures, language, flags, duplicate_of, revision, retry_count,
        expiries, created_at, error, failed_at)
    SELECT md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at,
        author, categories, enclosures, language, flags, duplicate_of, revision, retry_count,
        expiries + (lease_id IS NOT NULL AND claimed_until <= clock_timestamp())::integer,
        created_at, left(coalesce(reason, ''), 1000), clock_timestamp()
    FROM gone
    ON CONFLICT (md5) DO UPDATE SET  -- it was revived by hand, or came back with another text, and died again
        (feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at, author,
            categories, enclosures, language, flags, duplicate_of, revision, retry_count, expiries, created_at, error,
            failed_at)
        = (excluded.feed_id, excluded.entry_id, excluded.url, excluded.title, excluded.body, excluded.html,
            excluded.content_quality, excluded.content_hash, excluded.published_at, excluded.updated_at,
            excluded.author, excluded.categories, excluded.enclosures, excluded.language, excluded.flags,
            excluded.duplicate_of, excluded.revision, excluded.retry_count, excluded.expiries, excluded.created_at,
            excluded.error, excluded.failed_at);
    GET DIAGNOSTICS buried = ROW_COUNT;
    RETURN buried;
END
$$;
COMMENT ON FUNCTION bury_articles(text[], text) IS 'Moves pending articles to dead_articles, with the reason (cut to 1000 characters). Returns how many.';

CREATE FUNCTION claim_pending_articles(
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
BEGIN
    IF max_articles IS NULL OR max_articles < 0 OR max_expiries IS NULL OR lease IS NULL OR lease <= interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'claim_pending_articles: max_articles must not be negative, lease must be positive, none null';
    END IF;

    -- What came back goes first: it is older than what nobody has seen. Usually there is none.
    LOOP
        spent := '{}';
        FOR candidate IN
            SELECT md5, expiries + (lease_id IS NOT NULL)::integer AS expiries
            FROM pending_articles
            WHERE claimed_until <= moment
            ORDER BY claimed_until, created_at, md5
            LIMIT max_articles
            FOR UPDATE SKIP LOCKED
        LOOP
            IF candidate.expiries >= max_expiries THEN
                spent := spent || candidate.md5;
            ELSIF candidate.expiries < suspicious THEN
                chosen := chosen || candidate.md5;
            ELSE
                -- Its consumers went silent twice. If it is the article that kills them, those that were claimed with
                -- it are innocent: so it goes alone, and the others get through.
                alone := chosen = '{}';
                IF alone THEN
                    chosen := ARRAY[candidate.md5];
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
    IF chosen = '{}' THEN
        RETURN;
    END IF;

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
COMMENT ON FUNCTION claim_pending_articles(integer, interval, integer) IS 'Gives out up to max_articles, the oldest first, to nobody else until their lease is over. Fewer than asked for does not mean that there are no more; none does. An article whose lease ran out max_expiries times is moved to dead_articles instead.';

CREATE FUNCTION ack_articles(md5s text[], content_hashes text[] DEFAULT NULL) RETURNS integer
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
COMMENT ON FUNCTION ack_articles(text[], text[]) IS 'Removes articles that are done. One whose text has changed since it was claimed (content_hashes, in the order of md5s; else the last claim decides) stays pending. Returns how many were removed; calling it again is harmless.';

CREATE FUNCTION fail_articles(
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
        md5 := failed.md5;
        retry_count := failed.retry_count;
        retry_at := failed.claimed_until;
        IF failed.retry_count >= max_failures THEN
            spent := spent || failed.md5;
            retry_at := NULL;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF spent <> '{}' THEN
        PERFORM bury_articles(spent, error);
    END IF;
END
$$;
COMMENT ON FUNCTION fail_articles(text[], text, uuid[], integer, interval) IS 'Counts a failure of claimed articles and gives them out again after a growing pause (or retry_after); the one that makes max_failures moves them to dead_articles. With lease_ids only what is still held under one of them. Returns what was counted; retry_at is null for the dead.';

CREATE FUNCTION renew_articles(
    md5s text[], lease interval DEFAULT '5 minutes', lease_ids uuid[] DEFAULT NULL
) RETURNS SETOF text
LANGUAGE plpgsql ROWS 50
SET search_path FROM CURRENT
SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
    IF lease IS NULL OR lease <= interval '0' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'renew_articles: lease must be positive';
    END IF;
    PERFORM FROM pending_articles WHERE md5 = ANY(md5s) ORDER BY md5 FOR UPDATE;
    RETURN QUERY
    UPDATE pending_articles SET claimed_until = clock_timestamp() + lease
    WHERE md5 = ANY(md5s) AND lease_id = ANY(coalesce(lease_ids, ARRAY[lease_id]))
    RETURNING md5;
END
$$;
COMMENT ON FUNCTION renew_articles(text[], interval, uuid[]) IS 'Lets the lease of claimed articles run from now. Returns the md5s of those that are still held (with lease_ids: under one of them); what is missing is somebody else''s or gone.';

CREATE FUNCTION release_articles(md5s text[], lease_ids uuid[] DEFAULT NULL) RETURNS integer
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
    RETURN released;
END
$$;
COMMENT ON FUNCTION release_articles(text[], uuid[]) IS 'Gives claimed articles back, to be given out at once; nothing is counted against them. Returns how many.';

CREATE FUNCTION revive_articles(md5s text[]) RETURNS integer
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
DECLARE
    revived integer;
BEGIN
    PERFORM FROM dead_articles WHERE md5 = ANY(md5s) ORDER BY md5 FOR UPDATE;
    WITH back AS (
        DELETE FROM dead_articles AS dead USING feeds
        WHERE dead.md5 = ANY(md5s) AND feeds.id = dead.feed_id
        RETURNING dead.*
    ), pending AS (
        INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash,
            published_at, updated_at, author, categories, enclosures, language, flags, duplicate_of, revision, last_error,
            created_at)
        SELECT md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at,
            author, categories, enclosures, language, flags, duplicate_of, revision, error, created_at
        FROM back ORDER BY md5
        ON CONFLICT (md5) DO NOTHING  -- it is pending already, with a newer text
    )
    SELECT count(*) INTO revived FROM back;
    RETURN revived;
END
$$;
COMMENT ON FUNCTION revive_articles(text[]) IS 'Makes dead articles pending again, with nothing counted against them. Those whose feed was removed stay dead. Returns how many.';

-- The same notification several times in a transaction is one. It is sent at the commit, and carries no number: counting
-- would keep a copy of every new body for the length of the statement.
CREATE FUNCTION notify_pending() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    PERFORM pg_notify('feedmill_pending', '');
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION notify_pending() IS 'Trigger: tells those that LISTEN to feedmill_pending that articles came.';
CREATE TRIGGER notify_pending AFTER INSERT ON pending_articles FOR EACH STATEMENT EXECUTE FUNCTION notify_pending();
