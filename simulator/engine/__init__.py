"""The scheduling loop, its state in flat arrays, and the policies that decide in it."""
