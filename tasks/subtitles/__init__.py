"""What a sub-title is, by weak rules and a recurrent network over characters: an episode's number, a part, a
date, guests, the teams of a match and others (rules.py has the list).
"""
