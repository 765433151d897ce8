"""What is wrong with the pipeline, as sentences that page, API and command share."""
