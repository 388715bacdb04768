"""The one error of this example."""


class ExampleError(Exception):
    """What the user can put right, told in one line."""
