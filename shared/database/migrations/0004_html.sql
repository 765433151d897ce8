-- For those who show articles, and not only read them. Set by fetchers that keep it (FEEDMILL_KEEP_HTML).
ALTER TABLE pending_articles ADD COLUMN html text;
COMMENT ON COLUMN pending_articles.html IS 'The body as HTML that is safe to show; NULL if it was not kept or is plain text.';
