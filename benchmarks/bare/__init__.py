"""What stands beside Feedmill in a row: loops that only fetch, and SQL that only stores."""
