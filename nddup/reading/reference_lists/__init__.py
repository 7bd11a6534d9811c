"""Lists of near-duplicates made by other tools: `layouts` recognises the layout, `entries` reads the lines."""
