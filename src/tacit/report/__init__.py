"""What people look at: plots and HTML pages, made from released numbers only."""
