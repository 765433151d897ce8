-- What a feed listed when it was read last: jobs say which entries a fetcher need not read again. Services of before this
-- version don't know the table: a feed whose row they leave as it is is read in full within a day.
CREATE TABLE feed_listings (
    feed_id bigint PRIMARY KEY REFERENCES feeds (id) ON DELETE CASCADE,
    digests bytea NOT NULL,
    names bytea NOT NULL,
    addresses bytea NOT NULL,
    full_at timestamptz CHECK (isfinite(full_at)),
    CONSTRAINT feed_listings_parallel CHECK (
        octet_length(digests) % 8 = 0 AND octet_length(addresses) = octet_length(digests) - 8
        AND octet_length(names) = 2 * octet_length(addresses)
    )
);
-- Digests can't be compressed.
ALTER TABLE feed_listings
    ALTER digests SET STORAGE EXTERNAL, ALTER names SET STORAGE EXTERNAL, ALTER addresses SET STORAGE EXTERNAL;
COMMENT ON TABLE feed_listings IS 'Of each feed the entries whose articles are stored just as they were read: a fetcher need not read them again.';
COMMENT ON COLUMN feed_listings.digests IS 'The digest of the entries'' context, then of each entry: 8 bytes each.';
COMMENT ON COLUMN feed_listings.names IS 'The name (feed_items.md5) of each entry''s article: 16 bytes each.';
COMMENT ON COLUMN feed_listings.addresses IS 'A digest of each entry''s link: 8 bytes each. The last bit is 1 if the entry is known by its id.';
COMMENT ON COLUMN feed_listings.full_at IS 'When all listed entries were read last; null: they have to be read next time.';

-- The scheduler may have a role of its own (docs/how-to/operate.md): who may read feeds may read what they list.
DO $$
DECLARE
    reader text;
BEGIN
    FOR reader IN
        SELECT DISTINCT CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
        FROM pg_class CROSS JOIN LATERAL aclexplode(relacl)
        WHERE pg_class.oid = 'feeds'::regclass AND privilege_type = 'SELECT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT ON feed_listings TO %s', reader);
    END LOOP;
END
$$;
