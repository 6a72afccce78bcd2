"""Plain ASGI layers around the application, outermost first: boundary, headers, hosts, keys, origins, body limits."""
