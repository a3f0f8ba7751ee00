"""What did the person write? Filters, quantities and scenario files become values of `model`."""
