"""The HTTP API: what people and programs do with Feedmill, from any machine. The command line speaks to it, too."""
