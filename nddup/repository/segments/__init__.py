"""The storage of a repository: segments that never change (`layout`), and the commits that name them."""
