"""HTML pages to text: `fragments` says what is a page, `markup` extracts the text.

`elements` lists the elements that divide words; `page_limits` bounds the cost of parsing a page.
"""
