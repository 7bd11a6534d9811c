"""Lists of near-duplicates that others made: `layouts` recognises the layout, `entries` reads the lines."""
