"""What the commands ``similar``, ``explain`` and ``duplicates`` ask of a model, and their answers as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from flows.champion import champion_folder
from storage.home.corrections import Correction, corrected_on, read_corrections
from storage.home.latest import read_latest
from storage.home.workspace import Workspace
from tasks.enrich.explain import Decision, decide
from tasks.enrich.model import CategoryModel
from tasks.neighbours.index import SearchSettings
from tasks.neighbours.simhash import near_duplicates
from tasks.search.explain import Explanation, explain
from tasks.search.search import Neighbour, TitleSearch
from tasks.text.titles import parse_title

PAIRS_SHOWN = 6  # at either end
LEAST = 0.005  # contributions below this are not worth a line


def open_champion(
    home: str, method: Literal["auto", "exact", "approximate"] = "auto", model: str | None = None
) -> TitleSearch:
    """The titles of the model that serves.

    Raises:
        HomeError: No model serves yet.
    """
    return TitleSearch.open(champion_folder(home, model), SearchSettings(method=method))


def corrections_of(home: str, *titles: str) -> list[Correction]:
    """What a person corrected of these titles."""
    made = read_corrections(Workspace(home).home)
    shows = dict.fromkeys(parse_title(title).show_key for title in titles)
    return [made[show] for show in shows if show in made]


def neighbour_documents(
    made: Mapping[str, Correction], neighbours: Sequence[Neighbour]
) -> list[dict[str, Any]]:
    """Neighbours as JSON; of one that a person corrected, with these categories and ``corrected_at``."""
    found = []
    for near in neighbours:
        correction = made.get(parse_title(near.title).show_key)
        told = correction.document if correction else {}
        found.append({**vars(near), **told, "title": near.title})
    return found


def neighbour_lines(neighbours: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Titles and their cosine, categories, first channels and further editions as text."""
    width = min(60, max((len(near["title"]) for near in neighbours), default=0))
    for near in neighbours:
        who = f" ({corrected_on(near['corrected_at'])})" if "corrected_at" in near else ""
        about = f"{', '.join(near['categories'])}{who}  [{', '.join(near['channels'][:3])}]"
        count = near["editions"]
        more = f"  and {count} more edition{'s' * (count > 1)}" if count else ""
        yield f"{near['cosine']:.3f}  {near['title']:<{width}}  {about}{more}"


def explain_titles(home: str, left: str, right: str | None) -> tuple[dict[str, Any], list[str]]:
    """Why two titles are near, or of one its categories and who decided on them; and what a person corrected,
    as JSON and as text.

    Raises:
        SearchError: Nothing of one of the titles is known.
        HomeError: No model serves yet.
        EnrichError: The model that serves keeps no votes.
    """
    if right is None:
        model = CategoryModel(champion_folder(home), read_corrections(Workspace(home).home))
        decision, corrected = decide(model, left), corrections_of(home, left)
        document = {**asdict(decision), "corrected": [one.document for one in corrected]}
        return document, [*map(str, corrected), *decision_lines(decision)]
    found, corrected = explain(open_champion(home), left, right), corrections_of(home, left, right)
    document = {**asdict(found), "corrected": [one.document for one in corrected]}
    return document, [*map(str, corrected), *explanation_lines(found)]


def decision_lines(found: Decision) -> Iterator[str]:
    """Who decided on a title's categories as text, without a correction of its own."""
    said = ", ".join(found.categories)
    if found.by == "edition":
        yield f"“{found.title}”: {said}, corrected by a person at the nearest edition of the show"
    if found.guide:
        yield f"“{found.title}”: the guide says: {', '.join(found.guide)}"
    if not found.voted:
        yield f"“{found.title}”: no neighbour votes"
        return
    sure = f"how sure is unknown: {found.unsure}" if found.unsure else f"confidence {found.confidence:.3f}"
    held = ", ".join(f"{category} {count}" for category, count in found.votes.items())
    yield f"“{found.title}”: the vote says: {found.voted}, {sure}"
    yield f"\nof {len(found.voters)} voters: {held}"
    width = min(60, max(len(voter.title) for voter in found.voters))
    for voter in found.voters:
        yield f"  {voter.cosine:.3f}  {voter.title:<{width}}  {', '.join(voter.categories)}"


def explanation_lines(found: Explanation) -> Iterator[str]:
    """The explanation as text."""
    rank = f", number {found.rank} among the titles nearest to it" if found.rank else ""
    yield f"“{found.left}” and “{found.right}”: cosine {found.cosine:.3f}{rank}"
    together = [pair for pair in found.pairs if pair.contribution >= LEAST]
    apart = [pair for pair in reversed(found.pairs) if pair.contribution <= -LEAST]
    for heading, pairs in (("brings them together", together), ("keeps them apart", apart)):
        if pairs:
            yield f"\n{heading}:"
        for pair in pairs[:PAIRS_SHOWN]:
            parts = pair.left if pair.left == pair.right else f"{pair.left} ~ {pair.right}"
            yield f"  {pair.contribution:+.3f}  {parts}"
    if found.without:
        yield f"\n“{found.left}” without a word:"
    width = max((len(one.word) for one in found.without), default=0)
    for one in found.without:
        rank = f", number {one.rank}" if one.rank else ""
        nearest = ", ".join(one.nearest)
        yield f"  without {one.word:<{width}}  cosine {one.cosine:.3f}{rank}; nearest: {nearest}"


def find_duplicates(home: str, minimum_cosine: float) -> list[dict[str, Any]]:
    """Pairs of titles of the last run that are nearly the same, on any channel, nearest first.

    Raises:
        HomeError: No run has finished in this home, or its model is gone.
    """
    search = TitleSearch.open(Path(read_latest(home, "model")["model"]))
    pairs, cosines = near_duplicates(np.asarray(search.alone), minimum_cosine, np.random.default_rng(0))
    titles, channels = search.columns["title"], search.columns["channels"]
    found = []
    for pair, cosine in zip(pairs.tolist(), cosines.tolist(), strict=True):
        named, on = [titles[row] for row in pair], [channels[row] for row in pair]
        found.append({"titles": named, "cosine": round(cosine, 4), "channels": on})
    return found


def duplicate_line(pair: Mapping[str, Any]) -> str:
    """A pair of ``find_duplicates`` as text."""
    titles = zip(pair["titles"], pair["channels"], strict=True)
    return f"{pair['cosine']:.3f}  " + "  =  ".join(f"{title} [{', '.join(on[:2])}]" for title, on in titles)
