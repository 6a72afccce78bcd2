"""Write bench/RESULTS.md and the README's result rows from the records in bench/results."""
