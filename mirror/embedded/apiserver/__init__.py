"""The API server, free of any transport: ``ApiServer.handle`` takes a request and gives a response or a stream."""
