"""What predictions would change at a site, from its own log: a verdict, and one page of reasons."""
