"""HTML pages to text: `markup` extracts the text; `plain_pages` reads most pages without building a tree.

`page_limits` bounds the cost of parsing all other pages.
"""
