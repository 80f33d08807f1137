"""Hides repeats and programmes whose minimum age is above the limit, and counts the hidden programmes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tasks.tonight.exclusions import Exclusion
from tasks.tonight.programmes import Programme, Show, filter_programmes
from tasks.tonight.settings import TonightSettings

ADULT_AGE = 18  # with a lower age limit, adult programmes cannot be included
MAX_NAMES = 5  # maximum number of unknown ratings that a message lists


@dataclass
class HiddenCounts:
    """Numbers of programmes that the settings hide, by reason."""

    programmes: int = 0  # all programmes, including hidden programmes
    repeats: int = 0  # hidden repeats
    above_limit: int = 0  # hidden programmes whose minimum age is above the limit
    unrated: int = 0  # programmes without an age rating, which are hidden if settings.hide_unrated is set
    unknown: Counter[str] = field(default_factory=Counter)  # hidden programmes, by unknown age rating

    def messages(self, settings: TonightSettings) -> Iterator[str]:
        """Yields a message with the number of hidden programmes for each filter that the settings enable."""
        if settings.hide_repeats:
            yield f"repeats, hidden: {self.repeats:,} of {self.programmes:,} programmes"
        if settings.age is None:
            return
        if 0 < self.unrated == self.programmes - self.repeats and not settings.hide_unrated:
            yield "no programme of this evening has an age rating, so the age limit has no effect"
            return
        yield f"minimum age above {settings.age}, hidden: {self.above_limit:,}"
        if self.unknown:
            names = ", ".join(name for name, _ in self.unknown.most_common(MAX_NAMES))
            yield f"unknown age rating, hidden: {self.unknown.total():,} ({names})"
        if self.unrated:
            is_hidden = settings.hide_unrated
            state, advice = ("hidden", "") if is_hidden else ("listed", " (--hide-unrated hides them)")
            yield f"no age rating, {state}: {self.unrated:,}{advice}"


def lifted_exclusions(settings: TonightSettings) -> tuple[Exclusion, ...]:
    """Returns the exclusions in ``settings.include``, without "adult" if the age limit is below 18."""
    is_limited = settings.age is not None and settings.age < ADULT_AGE
    return tuple(kind for kind in settings.include if not (is_limited and kind == "adult"))


def hide_programmes(shows: Sequence[Show], settings: TonightSettings) -> tuple[list[Show], HiddenCounts]:
    """Returns the shows without programmes that the settings hide, and the numbers of hidden programmes."""
    hidden = HiddenCounts()
    visible_shows = filter_programmes(shows, lambda _, programme: not _is_hidden(programme, settings, hidden))
    return visible_shows, hidden


def _is_hidden(programme: Programme, settings: TonightSettings, hidden: HiddenCounts) -> bool:
    """Returns whether the settings hide a programme, and counts the programme in ``hidden``."""
    hidden.programmes += 1
    if settings.hide_repeats and programme.is_repeat:
        hidden.repeats += 1
        return True
    if settings.age is None:
        return False
    if programme.unknown_ratings:
        hidden.unknown[programme.unknown_ratings[0]] += 1
        return True
    if programme.age is None:
        hidden.unrated += 1
        return settings.hide_unrated
    is_above_limit = programme.age > settings.age
    hidden.above_limit += is_above_limit
    return is_above_limit
