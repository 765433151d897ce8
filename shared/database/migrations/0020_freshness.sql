-- How long articles took from their publication to their row: histograms by the hour, for eight days.

CREATE TABLE feed_freshness (
    at timestamptz NOT NULL,
    feed_id bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    bucket smallint NOT NULL,
    articles integer NOT NULL,
    PRIMARY KEY (at, feed_id, kind, bucket)
);
COMMENT ON TABLE feed_freshness IS 'New articles of each feed and UTC hour, by how long they took (services/writer/freshness). It survives its feed.';
COMMENT ON COLUMN feed_freshness.kind IS 'Whether the time is sure, else why not, or why the articles are not counted.';
COMMENT ON COLUMN feed_freshness.bucket IS 'They took at most 1.1 to the power of this, in seconds; 0 for articles that are not counted.';

-- The same for hosts. Writers sum up an hour soon after its end; the key begins with the hour, so that old ones go fast.
CREATE TABLE host_freshness (
    at timestamptz NOT NULL,
    politeness_group text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    bucket smallint NOT NULL,
    articles bigint NOT NULL,
    PRIMARY KEY (at, politeness_group, kind, bucket)
);
COMMENT ON TABLE host_freshness IS 'Sums of feed_freshness over the feeds of each host, and over all feeds.';
COMMENT ON COLUMN host_freshness.politeness_group IS 'Empty: all feeds together. The kind "summed" says that the hour has been summed up.';

ALTER TABLE feeds ADD COLUMN resumed_at timestamptz;
COMMENT ON COLUMN feeds.resumed_at IS 'When a person enabled the feed last: what came out while it was paused does not count as late.';
