"""Names of the scripted-model kit under which older tests know it."""

from kit import TONE as TONE
from kit import finished as finished
from kit import greeting as refinement
from kit import judgement as judged
from kit import stored_events as events_of
from kit import text as text

__all__ = ["TONE", "events_of", "finished", "judged", "refinement", "text"]
