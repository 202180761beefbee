"""Judge one kind of action each: rows of one action type in, score and evidence out.

A rule is a function of the rows that reached it (label and prediction of the same type, every needed
field given, the label on the screen) and the validity config. It returns one row for each, with ``row``,
``raw_score``, ``valid``, ``failure_reason`` and whatever evidence it has; solar_rl/validity.py does the rest.
"""
