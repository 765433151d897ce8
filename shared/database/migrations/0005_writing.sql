-- Texts are compressed by lz4 where the server was built with it: half the time of pglz, about the same size.
-- Rows that are there keep what they have.
DO $$
BEGIN
    ALTER TABLE pending_articles ALTER COLUMN body SET COMPRESSION lz4;
    ALTER TABLE pending_articles ALTER COLUMN html SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'this server has no lz4: texts stay compressed by pglz';
END
$$;

-- Articles that are one article under different addresses: the key is the MD5 of the common form (canonical.py).
-- Rows that are there have none, and are found by no duplicate of theirs.
ALTER TABLE feed_items ADD COLUMN canonical uuid, ADD COLUMN duplicate_of text COLLATE "C";
ALTER TABLE pending_articles ADD COLUMN duplicate_of text COLLATE "C";
CREATE INDEX feed_items_canonical ON feed_items (canonical) WHERE canonical IS NOT NULL AND duplicate_of IS NULL;
COMMENT ON COLUMN pending_articles.duplicate_of IS 'md5 of the article that came first under another address; see FEEDMILL_DUPLICATES.';

-- When its body was read last: what was not in it then, the feed no longer lists.
ALTER TABLE feeds ADD COLUMN last_read_at timestamptz;
