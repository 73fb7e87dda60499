"""SVHN cropped digits from their original `.mat` files."""
