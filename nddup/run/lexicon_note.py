"""`lexicon.json`, the file beside the lexicon of a run."""

import json

from nddup.metrics import LexiconMetrics
from nddup.run.stage import settings_of
from nddup.settings import derive
from nddup.settings.schema import Config

NOTE = "lexicon.json"


def note_of(config: Config, counted: LexiconMetrics) -> str:
    """Return its text: the settings and versions that made the lexicon, its counts, and the run it was taken from."""
    words = derive.words_of(config)
    made_by, taken_from = words and words.lexicon.key, settings_of(config)["lexicon"]["saved"]
    note = {"made_by": made_by, **counted.model_dump(), "taken_from": taken_from}
    return json.dumps(note, indent=2, ensure_ascii=False) + "\n"
