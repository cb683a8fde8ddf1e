"""What must not leave the machine: secrets, and who somebody is, taken out of a text.

``redact`` takes them out; ``secret_queries`` removes queries of URLs, which any document may hold.
Each other module finds secrets in its own way: by what they look like (``formats``), by the name
that a value has (``names``, ``assigned``), by the program that is started. The
.tsv files are their tables.
"""
