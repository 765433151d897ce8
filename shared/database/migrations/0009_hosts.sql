-- Feeds that want to be fetched and are not due: in back-off, asked to wait, or in the retry queue. For the alarm that
-- nothing succeeds: whoever fails quickly is hardly ever due.
CREATE INDEX feeds_in_trouble ON feeds (last_attempt_at)
WHERE enabled AND (failures > 0 OR last_outcome = 'throttled' OR (claim_id IS NOT NULL AND issued_at IS NULL));
-- Attempts that failed, by when they began: the first after the last success tells since when nothing succeeds.
CREATE INDEX feed_fetch_log_failed ON feed_fetch_log (started_at) WHERE NOT ok;

-- One host is one politeness group, however it is spelled (shared/politeness.py). A name that ended in one of the other
-- dots of IDNA kept a dot at its end, and IPv6 addresses stood there as they were written.
UPDATE feeds SET politeness_group = regexp_replace(politeness_group, '^([^/:]*[^/:.])\.(:[0-9]+)?(/|$)', '\1\2\3')
WHERE politeness_group ~ '^[^/:]*[^/:.]\.(:[0-9]+)?(/|$)';
DO $$
DECLARE
    row record;
    address inet;
BEGIN
    FOR row IN SELECT id, politeness_group FROM feeds WHERE politeness_group LIKE '[%' LOOP
        BEGIN
            address := substring(row.politeness_group FROM '^\[([^]%]*)')::inet;
        EXCEPTION WHEN invalid_text_representation THEN
            CONTINUE;  -- no address: it is a bad URL now, and its feed will say so
        END;
        UPDATE feeds
        SET politeness_group = CASE
                WHEN address <<= '::ffff:0:0/96'::inet THEN host('0.0.0.0'::inet + (address - '::ffff:0:0'::inet))
                ELSE '[' || host(address) || ']'
            END || coalesce(substring(row.politeness_group FROM '\](.*)$'), '')
        WHERE id = row.id;
    END LOOP;
END
$$;
