"""How commands speak to the API: over HTTP if FEEDMILL_API_URL is set, else to one that runs within the command."""
