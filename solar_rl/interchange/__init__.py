"""solar-rl's own interchange format: episodes as JSON lines, so that anybody's demonstrations have a door.

``model`` says what a line may hold (``episode.schema.json`` is generated from it), ``reading`` turns a line
into an Episode, ``writing`` turns Episodes, or a built dataset, into lines and screenshots.
"""

from solar_rl.interchange.model import InterchangeEpisode, json_schema
from solar_rl.interchange.reading import Images, read_line
from solar_rl.interchange.writing import export_dataset, write_episodes

__all__ = ["Images", "InterchangeEpisode", "export_dataset", "json_schema", "read_line", "write_episodes"]
