"""HTTP/1.1 as an API server needs it, on asyncio alone: reading requests, writing answers, connections."""
