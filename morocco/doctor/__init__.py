"""Whether this machine is fit to measure on: everything that can be looked at beforehand."""
