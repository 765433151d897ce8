-- What health counts of labels.

-- What the new articles of an attempt were labelled as, beside 0015's columns. Null: an older writer wrote the row.
ALTER TABLE feed_fetch_log
    ADD COLUMN items_enriched integer,
    ADD COLUMN items_language integer,
    ADD COLUMN items_topic integer,
    ADD COLUMN items_duplicate_title integer,
    ADD COLUMN items_duplicate_text integer;

-- As in 0015, with the columns above: counting articles by time reads only this index.
DROP INDEX feed_fetch_log_new;
CREATE INDEX feed_fetch_log_new ON feed_fetch_log (started_at)
INCLUDE (items_new, items_dated, items_full, items_enriched, items_language, items_topic, items_duplicate,
    items_duplicate_title, items_duplicate_text, tier) WHERE items_new > 0;

COMMENT ON COLUMN feed_fetch_log.items_enriched IS 'New articles that an enricher saw.';
COMMENT ON COLUMN feed_fetch_log.items_language IS 'New articles whose text tells its language.';
COMMENT ON COLUMN feed_fetch_log.items_topic IS 'New articles with a topic.';
COMMENT ON COLUMN feed_fetch_log.items_duplicate IS 'New articles that came before: under another address, or in nearly the same words.';
COMMENT ON COLUMN feed_fetch_log.items_duplicate_title IS 'Those of items_duplicate that were recognised by their title.';
COMMENT ON COLUMN feed_fetch_log.items_duplicate_text IS 'Those of items_duplicate that were recognised by their text.';
