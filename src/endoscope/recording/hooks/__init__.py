"""What one captured step holds, and the hooks and patches that hand it over."""
