"""Plain ASGI middleware, outermost first: boundary, headers, hosts, keys, origins, body limits."""
