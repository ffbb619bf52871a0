"""A model behind an address of somebody's: requests to a server with OpenAI's API, paced, and repeated as long as that
helps."""
