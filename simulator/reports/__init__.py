"""Tables, pages and pictures of replays and schedules."""
