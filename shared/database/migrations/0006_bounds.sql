-- What a person may write into feeds by hand and no service can count with: one such row would stop all schedulers,
-- or the results of all feeds that come together with its own.
UPDATE feeds SET next_fetch_at = now() WHERE NOT next_fetch_at BETWEEN '0001-01-02Z' AND '9999-12-31Z';
UPDATE feeds SET claim_expires_at = now() WHERE NOT claim_expires_at BETWEEN '0001-01-02Z' AND '9999-12-31Z';
UPDATE feeds SET interval_seconds = 31622400 WHERE interval_seconds > 31622400;
UPDATE feeds SET shortest_seconds = 31622400 WHERE shortest_seconds > 31622400;
UPDATE feeds SET longest_seconds = 31622400 WHERE longest_seconds > 31622400;
ALTER TABLE feeds
    ADD CONSTRAINT feeds_moments_in_calendar CHECK (
        next_fetch_at BETWEEN '0001-01-02Z' AND '9999-12-31Z' AND claim_expires_at BETWEEN '0001-01-02Z' AND '9999-12-31Z'
    ),
    ADD CONSTRAINT feeds_spans_within_a_year CHECK (
        interval_seconds <= 31622400 AND shortest_seconds <= 31622400 AND longest_seconds <= 31622400
    );
