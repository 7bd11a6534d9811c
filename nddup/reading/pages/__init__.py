"""Pages of HTML to text: `markup` takes the text; `plain_pages` reads most of them without a tree.

`page_limits` bounds what the parser of all other pages may cost.
"""
