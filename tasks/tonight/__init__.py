"""What is worth watching tonight: coming programmes ranked for viewers, as lists, pages and calendars."""
