"""Charts, one file per kind of result: each function takes a result folder and returns figures."""
