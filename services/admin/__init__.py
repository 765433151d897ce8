"""What an operator does with feeds, articles and dead letters, behind the command and the API."""
