"""HTML pages to text: `markup` extracts the text; `page_limits` bounds the cost of parsing a page."""
