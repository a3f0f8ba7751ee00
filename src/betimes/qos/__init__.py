"""Will it arrive in time, and what goes first? The papers' formulas as pure functions."""
