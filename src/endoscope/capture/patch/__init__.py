"""Names of torch that stand for functions of ours meanwhile, and all names that are private in torch."""
