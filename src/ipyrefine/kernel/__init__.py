"""What is known of the notebook's variables, and copies of them."""
