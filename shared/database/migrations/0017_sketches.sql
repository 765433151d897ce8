-- By what the writer finds near-duplicates. Articles of before have no sketch, and are not found; writers of before write
-- none. New columns that are null rewrite nothing.
ALTER TABLE feed_items ADD COLUMN duplicate_kind text, ADD COLUMN duplicate_score real;
COMMENT ON COLUMN feed_items.duplicate_kind IS 'Why duplicate_of is set: address, title or text; null: address, written by an older writer.';

CREATE TABLE article_sketches (
    md5 text COLLATE "C" PRIMARY KEY,
    feed_id bigint NOT NULL,
    host bigint NOT NULL,
    version integer NOT NULL,
    count integer NOT NULL,
    keys integer[] NOT NULL,
    head bytea NOT NULL,
    rest bytea NOT NULL,
    numbers bytea NOT NULL,
    names bytea NOT NULL,
    title bytea NOT NULL,
    words bytea NOT NULL,
    told bytea NOT NULL,
    is_telling boolean NOT NULL,
    first_seen_at timestamptz NOT NULL
);
-- Hashes can't be compressed.
ALTER TABLE article_sketches
    ALTER head SET STORAGE EXTERNAL, ALTER rest SET STORAGE EXTERNAL, ALTER numbers SET STORAGE EXTERNAL,
    ALTER names SET STORAGE EXTERNAL, ALTER title SET STORAGE EXTERNAL, ALTER words SET STORAGE EXTERNAL;
-- A list of new keys would be read by every look-up.
CREATE INDEX article_sketches_keys ON article_sketches USING gin (keys) WITH (fastupdate = off);
CREATE INDEX article_sketches_age ON article_sketches (first_seen_at);
COMMENT ON TABLE article_sketches IS 'Of each article of the last days that is no duplicate: what near-duplicates are found by.';
COMMENT ON COLUMN article_sketches.host IS 'A digest of its address'' host.';
COMMENT ON COLUMN article_sketches.keys IS 'Some of its smallest hashes: near-duplicates have one of them.';

CREATE TABLE unsettled_articles (
    md5 text COLLATE "C" PRIMARY KEY,
    feed_id bigint NOT NULL,
    keys integer[] NOT NULL,
    duplicate_of text COLLATE "C",
    added_at timestamptz NOT NULL,
    settles_at xid8
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE unsettled_articles IS 'New articles with a sketch that a transaction under way may not have seen: compared once more when it has ended.';
COMMENT ON COLUMN unsettled_articles.keys IS 'Those of its sketch; none: it is a duplicate.';
COMMENT ON COLUMN unsettled_articles.settles_at IS 'When all transactions before this one have ended, everybody has seen the article.';
