"""Records of resource managers, read into domain types: pure functions at the edge."""
