"""The queue of a cluster as its resource manager shows it, played forward."""
