"""How each feed is, in one word, with the reason and what to do."""
