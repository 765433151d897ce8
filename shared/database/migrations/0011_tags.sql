-- Tags of feeds, as people spell them. They are compared without regard to case, by `tag_keys`: PostgreSQL computes these
-- only when the tags change, so that polls, which update a feed's row twice, don't pay for it.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE FUNCTION fold_tags(tags text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
    SELECT coalesce(array_agg(lower(tag)), '{}') FROM unnest(tags) AS tag
$$;
COMMENT ON FUNCTION fold_tags(text[]) IS 'Returns tags in the form in which they are compared: in lower case.';

ALTER TABLE feeds
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 32),
    ADD COLUMN tag_keys text[] NOT NULL GENERATED ALWAYS AS (fold_tags(tags)) STORED;
COMMENT ON COLUMN feeds.tags IS 'Set by people, and by folders of imported lists; a/b is a folder within a folder.';
COMMENT ON COLUMN feeds.tag_keys IS 'The tags in the form in which they are compared.';

-- Feeds without tags, often all of them, cost this index nothing. A query by tag has to say `tag_keys <> '{}'`, too.
CREATE INDEX feeds_tags ON feeds USING gin (tag_keys) WHERE tag_keys <> '{}';
