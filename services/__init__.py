"""One package per process. None imports another; `cli` is the front door to all of them."""
