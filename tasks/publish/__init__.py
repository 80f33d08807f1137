"""Stage publish: draws the map and the plots of a run, registers its model, and writes its report."""
