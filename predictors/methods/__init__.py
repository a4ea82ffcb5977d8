"""One module for each method, and the compiled search beside the method that needs one."""
