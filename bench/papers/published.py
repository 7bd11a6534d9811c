"""Figures published in the papers, which docs/papers.md sets beside ours."""

IMAGES_2009 = {
    ("n smallest of a permutation", 3): 312, ("n smallest of a permutation", 6): 622,
    ("n smallest of a permutation", 12): 1360, ("n smallest of a permutation", 24): 2435,
    ("smallest of n permutations", 3): 924, ("smallest of n permutations", 6): 1905,
    ("smallest of n permutations", 12): 3617, ("smallest of n permutations", 24): 7501,
}  # fmt: skip
"""Seconds to build images of 100, shingles of 20 words, on a Pentium 4, by files of about 10,000 documents."""

DOCUMENTS_2009 = {3: 26_077, 6: 53_539, 12: 110_997, 24: 223_804}

MINING_2009: dict[tuple[str, int], dict[int, float]] = {
    ("n smallest of a permutation", 24): {100: 16.1, 95: 120, 90: 590, 85: 1711},
    ("smallest of n permutations", 12): {100: 291, 95: 40_419},
}
"""Seconds of FPmax* by the least number of common features."""

QUALITY_2009 = {
    150: (0.76, 0.25, 0.38), 145: (0.74, 0.29, 0.42), 140: (0.70, 0.39, 0.50), 135: (0.67, 0.50, 0.57),
    130: (0.63, 0.57, 0.60), 125: (0.58, 0.64, 0.61), 120: (0.47, 0.64, 0.54), 115: (0.37, 0.67, 0.48),
    110: (0.29, 0.70, 0.41), 105: (0.23, 0.73, 0.35), 100: (0.18, 0.69, 0.29),
}  # fmt: skip
"""Precision, recall and F1 of table 4: 6,941 documents, images of 150, shingles of 10 words."""

SECONDS_2009 = {150: 0.098, 145: 0.128, 140: 0.187, 135: 0.276, 130: 0.383, 125: 0.455, 120: 0.559, 115: 0.669,
                110: 0.873, 105: 1.045, 100: 1.294}  # fmt: skip
"""Seconds of the same table."""

BISECTION_2009 = {"100 of 6,941": (11, 0.04), "1,000": (766, 0.16), "2,000": (3125, 0.30), "3,000": (6402, 0.40),
                  "5,000": (14_484, 0.63)}  # fmt: skip
"""Seconds and F1 of table 5, by the number of clusters."""

TIME_2017 = {100: (1, 1), 200: (1, 1), 300: (1, 2), 400: (2, 3), 500: (2, 3), 600: (3, 3), 700: (3, 4), 800: (4, 5),
             900: (4, 5), 1000: (5, 6)}  # fmt: skip
"""Least and most seconds of table 6 over shingles of 4 to 10 words, by documents."""
