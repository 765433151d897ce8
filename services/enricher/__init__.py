"""The enricher: takes results on their way to the writer, and says of each entry what a reader would see in it.

It computes, and has neither a database nor a network. A text that it can't make out goes on as it came: no article
waits for a label, or is lost for one.
"""
