"""What people look at in a finished run: `opening` opens it, `show`, `preview` and `formal_context` spell it."""
