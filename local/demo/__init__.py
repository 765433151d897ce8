"""`feedmill demo`: the main job on a farm of feeds on loopback, counted."""
