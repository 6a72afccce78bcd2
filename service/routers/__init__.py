"""The API, one noun a file. Routes are plain functions (they run in threads); only streams are async."""
