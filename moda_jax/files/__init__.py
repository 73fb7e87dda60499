"""Reading and writing files that may be untrusted or half-written."""
