"""Hides repeats and programmes with a higher minimum age, and counts what it hides."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tasks.tonight.exclusions import Exclusion
from tasks.tonight.programmes import Programme, Show
from tasks.tonight.settings import TonightSettings

ADULT_AGE = 18
MAX_NAMES = 5  # unknown ratings in a message


@dataclass
class Hidden:
    """Numbers of programmes that were hidden, and of those without an age rating."""

    programmes: int = 0  # before
    repeats: int = 0
    too_old: int = 0  # minimum age above the limit
    unrated: int = 0  # no age rating; hidden if the settings say so
    unknown: Counter[str] = field(default_factory=Counter)  # programmes by unknown age rating; hidden

    def messages(self, settings: TonightSettings) -> Iterator[str]:
        """Yields a sentence for each kind of programme that the settings concern."""
        if settings.hide_repeats:
            yield f"repeats, hidden: {self.repeats:,} of {self.programmes:,} programmes"
        if settings.age is None:
            return
        if 0 < self.unrated == self.programmes - self.repeats and not settings.hide_unrated:
            yield "no programme of this evening has an age rating, so that the limit of age has no effect"
            return
        yield f"minimum age above {settings.age}, hidden: {self.too_old:,}"
        if self.unknown:
            names = ", ".join(name for name, _ in self.unknown.most_common(MAX_NAMES))
            yield f"unknown age rating, hidden: {self.unknown.total():,} ({names})"
        if self.unrated:
            is_hidden = settings.hide_unrated
            state, advice = ("hidden", "") if is_hidden else ("listed", " (--hide-unrated hides them)")
            yield f"no age rating, {state}: {self.unrated:,}{advice}"


def included(settings: TonightSettings) -> tuple[Exclusion, ...]:
    """Returns the kinds of programmes that are included; adult ones never with a limit of age below 18."""
    is_limited = settings.age is not None and settings.age < ADULT_AGE
    return tuple(kind for kind in settings.include if not (is_limited and kind == "adult"))


def hide_programmes(shows: Sequence[Show], settings: TonightSettings) -> tuple[list[Show], Hidden]:
    """Returns the shows with the programmes that the settings do not hide, and the numbers of hidden ones."""
    hidden = Hidden()
    remaining = [
        replace(show, programmes=programmes)
        for show in shows
        if (programmes := tuple(one for one in show.programmes if not _is_hidden(one, settings, hidden)))
    ]
    return remaining, hidden


def _is_hidden(programme: Programme, settings: TonightSettings, hidden: Hidden) -> bool:
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
    hidden.too_old += programme.age > settings.age
    return programme.age > settings.age
