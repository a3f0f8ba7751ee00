"""Which subscriptions want this event? One index for all of them."""
