"""What people look at in a browser: pages rendered from what the operations answer."""
