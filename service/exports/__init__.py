"""Things to take home, built from what is stored; pure text, no database and no torch."""
