"""Tokens, logins, the audit log, and answers that are kept for requests that come twice."""
