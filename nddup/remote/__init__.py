"""Files elsewhere: in buckets, on the Hub, on web servers; fetched, noted and kept. May import: ground, errors."""
