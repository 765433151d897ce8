"""The enricher: results in, the same with labels out.

Takes `FeedFetched` from the queue `enricher`. Gives it to the next stage, with what a reader would see in each entry.
Computes, and has neither a database nor a network. A text that it can't make out goes on as it came: no article waits
for a label, or is lost for one.

    handler    one result                  enriching  its entries: they go on, whatever a part raises
    parts      what is found               text       what the parts read of an entry
    language, similarity, topics, entities            the parts
"""
