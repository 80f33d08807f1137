"""What people see: the map, the plots, the model."""
