"""A/A confirmations, a power curve, and where the judge's time goes."""
