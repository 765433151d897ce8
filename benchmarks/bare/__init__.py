"""What stands beside Feedmill in a row: scripts that people write, a loop that only fetches, SQL that only stores."""
