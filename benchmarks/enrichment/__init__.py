"""How good the enricher is: `make eval`. Each module measures one part on data that installed packages bring."""
