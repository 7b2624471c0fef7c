"""What can be counted about a draft, one file a criterion (F-07)."""
