"""Something went wrong: in the user's numbers, or in ours."""
