"""Look at what somebody has on disk: which format it is, what is in it, and a dataset.yaml to start from."""

from solar_rl.inspection.contents import Survey, survey
from solar_rl.inspection.formats import Guess, guess, guesses
from solar_rl.inspection.start import start_yaml

__all__ = ["Guess", "Survey", "guess", "guesses", "start_yaml", "survey"]
