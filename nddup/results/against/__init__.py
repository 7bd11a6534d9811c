"""One collection against another, as `nddup against` does it: `compare_collections` tells the order of the steps."""
