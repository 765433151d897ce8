"""Lists of feeds, as other programs write and read them: OPML, CSV, and plain lists of URLs.

`open_list` checks a file, `Import` registers its feeds, `export_feeds` writes a list. A list is read twice, because
nothing is imported before the whole file was found readable. Reading takes bounded memory, whatever is in the file.
"""
