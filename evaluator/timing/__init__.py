"""Time calls on the judge's clock."""
