"""The proof by replay: does it find what is wrong, and nothing else?"""
