"""Which hosts this fetcher owns, among all fetchers."""
