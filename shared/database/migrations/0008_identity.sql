-- Which article an entry is (services/writer/identity.py): by the id that its feed gives, and by its title as it is now.
-- Rows that are there get their key when their article is seen again; a writer of before leaves both columns null.
-- New columns that are null rewrite nothing. Building the indexes reads the table once each, and nothing is put into them:
-- half a second for a million rows in memory. Writers wait meanwhile.
ALTER TABLE feed_items ADD COLUMN entry_key uuid, ADD COLUMN title_md5 text COLLATE "C";
CREATE INDEX feed_items_key ON feed_items (feed_id, entry_key) WHERE entry_key IS NOT NULL;
CREATE INDEX feed_items_title ON feed_items (title_md5) WHERE title_md5 IS NOT NULL;
COMMENT ON COLUMN feed_items.md5 IS 'The article''s name for life: MD5(url + title) when it was first seen, with the feed''s id where that was taken.';
COMMENT ON COLUMN feed_items.entry_key IS 'Digest of the id that the feed gives and the link; null: it gives none, or the row is older than this column.';
COMMENT ON COLUMN feed_items.title_md5 IS 'MD5(url + title) with the present title, where that is not the name.';

-- Locks are taken in one order by all: feeds by id, ledger, pending, dead by md5 (docs/writing.md). Functions name things
-- in the schema where the tables are, whatever their caller's search_path says.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- As before, but the dead are inserted in the order of md5.
CREATE OR REPLACE FUNCTION bury_articles(md5s text[], reason text) RETURNS integer
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan
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
    FROM gone ORDER BY md5
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

-- It took the dead first, and the writer, which makes a changed article pending again, pending ones first: a deadlock.
CREATE OR REPLACE FUNCTION revive_articles(md5s text[]) RETURNS integer
LANGUAGE plpgsql SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    names text[];
    deaths timestamptz[];
    revived integer;
BEGIN
    PERFORM FROM feeds WHERE id IN (SELECT feed_id FROM dead_articles WHERE md5 = ANY(md5s)) ORDER BY id FOR KEY SHARE;
    SELECT array_agg(md5), array_agg(failed_at) INTO names, deaths
    FROM dead_articles AS dead JOIN feeds ON feeds.id = dead.feed_id WHERE md5 = ANY(md5s);
    INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash,
        published_at, updated_at, author, categories, enclosures, language, flags, duplicate_of, revision, last_error,
        created_at)
    SELECT md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at,
        author, categories, enclosures, language, flags, duplicate_of, revision, error, created_at
    FROM dead_articles WHERE md5 = ANY(names) ORDER BY md5
    ON CONFLICT (md5) DO NOTHING;  -- it is pending already, with a newer text
    PERFORM FROM dead_articles WHERE md5 = ANY(names) ORDER BY md5 FOR UPDATE;
    DELETE FROM dead_articles AS dead USING unnest(names, deaths) AS known (md5, failed_at)
    WHERE dead.md5 = known.md5 AND dead.failed_at = known.failed_at;  -- else it died once more meanwhile
    GET DIAGNOSTICS revived = ROW_COUNT;
    RETURN revived;
END
$$;
