"""How a repository lies on the disk: segments that never change (`layout`), and the commits that name them."""
