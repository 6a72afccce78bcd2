"""What service and workers share, without logic: settings, logging, queue names, nudges."""
