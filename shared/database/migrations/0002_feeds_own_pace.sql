-- What a feed says of its pace stands in its body, which a 304 does not repeat.
ALTER TABLE feeds ADD COLUMN ttl_seconds double precision;
COMMENT ON COLUMN feeds.ttl_seconds IS 'From ttl or sy:update* of the body that was read last: a floor for every next fetch.';
