"""Kind of programme (film, series, news, sport, children, music, other), separate from the genre."""
