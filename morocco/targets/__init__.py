"""What is measured: containers, bare processes, and the engine behind them."""
