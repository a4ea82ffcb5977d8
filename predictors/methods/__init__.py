"""One module a method, and the compiled search beside the method that needs one."""
