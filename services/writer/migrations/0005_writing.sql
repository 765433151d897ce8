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
