"""Histories that are written by hand: good ones, and for each rule of the judge some that break it."""
