"""What holds of a submission, and what does not."""
