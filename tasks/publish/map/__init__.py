"""The map: one HTML file, its content, the places of its titles, and why they are near each other."""
