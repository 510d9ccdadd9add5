"""When a step is recorded: policies, triggers, the budget."""
