"""Does it do what the papers say? One module per figure; returns points, draws nothing."""
