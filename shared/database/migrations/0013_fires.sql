-- Fetches by hand, with what became of them (services/admin/feeds/fires.py). The id is the claim_id of the job.
CREATE TABLE fire_tasks (
    id uuid PRIMARY KEY,
    feed_id bigint NOT NULL REFERENCES feeds ON DELETE CASCADE,
    dry_run boolean NOT NULL,
    status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'error')),
    requested_by text NOT NULL,
    queued_at timestamptz NOT NULL,
    deadline_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    outcome text,
    fetched integer,
    new integer,
    changed integer,
    known integer,
    entries jsonb,
    error text,
    held tstzrange NOT NULL DEFAULT 'empty',
    -- A real fire at most once in 60 seconds per feed, whoever asks. int8range in place of an extension for `=`.
    CONSTRAINT fire_tasks_once_a_minute
        EXCLUDE USING gist (int8range(feed_id, feed_id, '[]') WITH &&, held WITH &&) WHERE (NOT dry_run),
    CONSTRAINT fire_tasks_held_a_minute
        CHECK (isempty(held) OR upper(held) - lower(held) = interval '60 seconds')
);
CREATE INDEX fire_tasks_feed ON fire_tasks (feed_id, queued_at, id);
CREATE INDEX fire_tasks_queued ON fire_tasks (queued_at, id);
CREATE INDEX fire_tasks_running ON fire_tasks (deadline_at) WHERE status = 'running';
COMMENT ON COLUMN fire_tasks.deadline_at IS 'A task that runs for longer is an error: its job was lost, or nobody reads the queue.';
COMMENT ON COLUMN fire_tasks.outcome IS 'Of the first attempt; NULL: no result has come.';
COMMENT ON COLUMN fire_tasks.held IS 'The minute in which no other fire of the feed is accepted; empty: of a dry run, or its job could not be published.';
