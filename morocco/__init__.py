"""Measure language models in containers: speed, start-up time, CPU, RAM and GPU memory."""

__version__ = "1.0.0"
