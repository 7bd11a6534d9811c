"""From files to RECORDS on Spark: `splits` cuts files, `unsplit_files` reads others whole, `sketch_scan` sketches."""
