"""Office-31: 31 classes of office things in three domains."""
