"""Figures published in the papers, which docs/papers.md sets beside ours."""

IMAGES_2009 = {
    ("n smallest of a permutation", 3): 312, ("n smallest of a permutation", 6): 622,
    ("n smallest of a permutation", 12): 1360, ("n smallest of a permutation", 24): 2435,
    ("smallest of n permutations", 3): 924, ("smallest of n permutations", 6): 1905,
    ("smallest of n permutations", 12): 3617, ("smallest of n permutations", 24): 7501,
}  # fmt: skip
"""Seconds to build images of 100, shingles of 20 words, on a Pentium 4, by files of about 10,000 documents."""

SHAPES_2005 = {(5, 100): 541, (10, 100): 563, (15, 100): 611, (20, 100): 622, (10, 120): 622, (10, 150): 745,
               (10, 180): 1312, (10, 200): 2585}  # fmt: skip
"""Seconds to build images of the n smallest, by shingle length and size, for files 1-6."""

DOCUMENTS_2009 = {3: 26_077, 6: 53_539, 12: 110_997, 24: 223_804}

MINING_2009: dict[tuple[str, int], dict[int, float]] = {
    ("n smallest of a permutation", 24): {100: 16.1, 95: 120, 90: 590, 85: 1711},
    ("smallest of n permutations", 12): {100: 291, 95: 40_419},
}
"""Seconds of FPmax* by the least number of common features."""

PAIRS_2009 = {
    "20 words, 100 smallest": {
        100: (191_834, 41_938, 15_958), 95: (191_834, 55_643, 22_810), 90: (191_834, 84_012, 36_696),
        85: (191_834, 113_100, 55_300),
    },
    "10 words, 150 smallest": {
        150: (33_267, 6905, 4454), 145: (33_267, 9543, 6114), 140: (33_267, 13_827, 8688),
        135: (33_267, 17_958, 11_523), 130: (33_267, 21_384, 13_340), 125: (33_267, 24_490, 14_031),
    },
    "20 words, 100 permutations": {
        100: (105_570, 21_866, 10_347), 95: (105_570, 25_457, 12_570), 90: (33_267, 19_393, 9051),
        85: (16_666, 9802, 4903),
    },
}  # fmt: skip
"""Pairs in the list, found, and common, of tables 2 and 6, by images and k: of the most files that have a result."""

QUALITY_100_2009 = {100: (0.4, 0.2, 0.24), 95: (0.4, 0.2, 0.31), 90: (0.5, 0.4, 0.42), 85: (0.5, 0.4, 0.44),
                    80: (0.4, 0.5, 0.46)}  # fmt: skip
"""Precision, recall and F1 of table 3: 53,539 documents, images of 100, shingles of 20 words."""

QUALITY_2009 = {
    150: (0.76, 0.25, 0.38), 145: (0.74, 0.29, 0.42), 140: (0.70, 0.39, 0.50), 135: (0.67, 0.50, 0.57),
    130: (0.63, 0.57, 0.60), 125: (0.58, 0.64, 0.61), 120: (0.47, 0.64, 0.54), 115: (0.37, 0.67, 0.48),
    110: (0.29, 0.70, 0.41), 105: (0.23, 0.73, 0.35), 100: (0.18, 0.69, 0.29),
}  # fmt: skip
"""Precision, recall and F1 of table 4: 6,941 documents, images of 150, shingles of 10 words."""

SECONDS_2009 = {150: 0.098, 145: 0.128, 140: 0.187, 135: 0.276, 130: 0.383, 125: 0.455, 120: 0.559, 115: 0.669,
                110: 0.873, 105: 1.045, 100: 1.294}  # fmt: skip
"""Seconds of the same table."""

BISECTION_2009 = {
    "100 of 6,941": (11, 0.02, 0.90, 0.04), "1,000": (766, 0.09, 0.78, 0.16), "2,000": (3125, 0.19, 0.74, 0.30),
    "3,000": (6402, 0.28, 0.71, 0.40), "5,000": (14_484, 0.64, 0.61, 0.63), "6,000": (19_127, 0.90, 0.35, 0.51),
}  # fmt: skip
"""Seconds, precision, recall and F1 of table 5, by the number of clusters."""

TIME_2017 = {100: (1, 1), 200: (1, 1), 300: (1, 2), 400: (2, 3), 500: (2, 3), 600: (3, 3), 700: (3, 4), 800: (4, 5),
             900: (4, 5), 1000: (5, 6)}  # fmt: skip
"""Least and most seconds of table 6 over shingles of 4 to 10 words, by documents."""

FUNCTIONS_2017 = {33: "1 s with 10, 93 s with 20", 66: "3 s with 10, 195 s with 20", 100: "4 s with 20"}
"""Seconds of table 7 by documents and hash functions."""

CURVE_2017 = {0.2: 0.006380581, 0.3: 0.047494259, 0.4: 0.186049552, 0.5: 0.470050715, 0.6: 0.801902454,
              0.7: 0.974780544, 0.8: 0.999643942, 0.9: 0.999999982}  # fmt: skip
"""Probability of table 8 that a pair of a resemblance shares a bucket."""
