"""Pages for people: views of the store and of the operations, rendered by templates."""
