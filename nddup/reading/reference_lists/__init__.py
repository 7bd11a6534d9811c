"""Lists of near-duplicates made by other tools: `layouts` recognises the layout and reads the lines."""
