-- What the enricher finds out about an article, and how a duplicate was recognised. Null: no enricher saw it, or it was
-- written by an older writer. New columns that are null rewrite nothing.
ALTER TABLE pending_articles
    ADD COLUMN detected_language text,
    ADD COLUMN language_confidence real,
    ADD COLUMN topic text,
    ADD COLUMN topic_confidence real,
    ADD COLUMN entities jsonb,
    ADD COLUMN duplicate_kind text,
    ADD COLUMN duplicate_score real;
ALTER TABLE dead_articles
    ADD COLUMN detected_language text,
    ADD COLUMN language_confidence real,
    ADD COLUMN topic text,
    ADD COLUMN topic_confidence real,
    ADD COLUMN entities jsonb,
    ADD COLUMN duplicate_kind text,
    ADD COLUMN duplicate_score real;
COMMENT ON COLUMN pending_articles.detected_language IS 'The text''s own (ISO 639-1), whatever the feed says; und: the text does not tell it.';
COMMENT ON COLUMN pending_articles.topic IS 'One of the taxonomy''s labels; null: none is sure enough.';
COMMENT ON COLUMN pending_articles.entities IS 'People, organisations, places and technologies: name, kind, id at Wikidata, mentions.';
COMMENT ON COLUMN pending_articles.duplicate_kind IS 'Why duplicate_of is set: address, title or text.';
COMMENT ON COLUMN dead_articles.detected_language IS 'The text''s own (ISO 639-1), whatever the feed says; und: the text does not tell it.';
COMMENT ON COLUMN dead_articles.topic IS 'One of the taxonomy''s labels; null: none is sure enough.';
COMMENT ON COLUMN dead_articles.entities IS 'People, organisations, places and technologies: name, kind, id at Wikidata, mentions.';
COMMENT ON COLUMN dead_articles.duplicate_kind IS 'Why duplicate_of is set: address, title or text.';

-- Shares are shares. Not valid: the rows that are there have none, and are not read for it.
ALTER TABLE pending_articles
    ADD CONSTRAINT pending_articles_shares CHECK (
        language_confidence BETWEEN 0 AND 1 AND topic_confidence BETWEEN 0 AND 1 AND duplicate_score BETWEEN 0 AND 1
    ) NOT VALID;
ALTER TABLE dead_articles
    ADD CONSTRAINT dead_articles_shares CHECK (
        language_confidence BETWEEN 0 AND 1 AND topic_confidence BETWEEN 0 AND 1 AND duplicate_score BETWEEN 0 AND 1
    ) NOT VALID;

-- As before, with the columns above.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

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
        published_at, updated_at, author, categories, enclosures, language, flags, duplicate_of,
        detected_language, language_confidence, topic, topic_confidence,
        entities, duplicate_kind, duplicate_score, revision, retry_count,
        expiries, created_at, error, failed_at)
    SELECT md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at,
        author, categories, enclosures, language, flags, duplicate_of,
        detected_language, language_confidence, topic, topic_confidence,
        entities, duplicate_kind, duplicate_score, revision, retry_count,
        expiries + (lease_id IS NOT NULL AND claimed_until <= clock_timestamp())::integer,
        created_at, left(coalesce(reason, ''), 1000), clock_timestamp()
    FROM gone ORDER BY md5
    ON CONFLICT (md5) DO UPDATE SET  -- it was revived by hand, or came back with another text, and died again
        (feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at, author,
            categories, enclosures, language, flags, duplicate_of,
        detected_language, language_confidence, topic, topic_confidence,
        entities, duplicate_kind, duplicate_score, revision, retry_count, expiries, created_at, error,
            failed_at)
        = (excluded.feed_id, excluded.entry_id, excluded.url, excluded.title, excluded.body, excluded.html,
            excluded.content_quality, excluded.content_hash, excluded.published_at, excluded.updated_at,
            excluded.author, excluded.categories, excluded.enclosures, excluded.language, excluded.flags,
            excluded.duplicate_of, excluded.detected_language, excluded.language_confidence, excluded.topic,
            excluded.topic_confidence, excluded.entities, excluded.duplicate_kind, excluded.duplicate_score,
            excluded.revision, excluded.retry_count, excluded.expiries, excluded.created_at,
            excluded.error, excluded.failed_at);
    GET DIAGNOSTICS buried = ROW_COUNT;
    RETURN buried;
END
$$;

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
        published_at, updated_at, author, categories, enclosures, language, flags, duplicate_of,
        detected_language, language_confidence, topic, topic_confidence,
        entities, duplicate_kind, duplicate_score, revision, last_error,
        created_at)
    SELECT md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at,
        author, categories, enclosures, language, flags, duplicate_of,
        detected_language, language_confidence, topic, topic_confidence,
        entities, duplicate_kind, duplicate_score, revision, error, created_at
    FROM dead_articles WHERE md5 = ANY(names) ORDER BY md5
    ON CONFLICT (md5) DO NOTHING;  -- it is pending already, with a newer text
    PERFORM FROM dead_articles WHERE md5 = ANY(names) ORDER BY md5 FOR UPDATE;
    DELETE FROM dead_articles AS dead USING unnest(names, deaths) AS known (md5, failed_at)
    WHERE dead.md5 = known.md5 AND dead.failed_at = known.failed_at;  -- else it died once more meanwhile
    GET DIAGNOSTICS revived = ROW_COUNT;
    RETURN revived;
END
$$;
