"""Working fakes of expensive parts; each passes the same tests as the real part."""
