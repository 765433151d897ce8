"""Articles, and the consumers who drain them."""
