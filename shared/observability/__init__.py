"""Logs, metrics and health, and text that is safe to show."""
