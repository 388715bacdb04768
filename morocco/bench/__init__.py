"""One measurement: a target is started, fed, drained and watched."""
