"""Predictions and labels to the metrics of Russian SuperGLUE."""
