"""Feed to Guide: read XMLTV into the catalogue, nothing lost, and publish a snapshot."""
