"""Working stand-ins for what is expensive to have; each passes the same tests as the real thing."""
