"""Computes and formats the output of the commands ``similar``, ``explain`` and ``duplicates``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from flows.champion import find_champion
from storage.home.corrections import Correction, corrected_on, read_corrections
from storage.home.latest import read_latest
from storage.home.workspace import Workspace
from tasks.neighbours.index import SearchSettings
from tasks.neighbours.simhash import find_near_duplicates
from tasks.search.explain import Explanation, explain
from tasks.search.search import TitleSearch
from tasks.text.titles import parse_title

if TYPE_CHECKING:
    from tasks.enrich.explain import Decision

KIND_REASONS = {  # why a programme has its kind (film, series …), by source
    "guide": "as the guide says",
    "structure": "because its airings have episode numbers",
    "predicted": "predicted with probability {:.2f}",
}
MAX_PAIRS = 6  # maximum number of printed pairs with the largest contributions, and with the smallest
MIN_CONTRIBUTION = 0.005  # pairs with a smaller absolute contribution are not printed


def open_champion(
    home: str, method: Literal["auto", "exact", "approximate"] = "auto", model: str | None = None
) -> TitleSearch:
    """Opens the search over the titles of the champion or, if set, of ``model`` (see flows/champion.py).

    Raises:
        HomeError: There is no champion yet.
    """
    return TitleSearch.open(find_champion(home, model).folder, SearchSettings(method=method))


def find_corrections(home: str, *titles: str) -> list[Correction]:
    """Returns the corrections that users made to the categories of the shows of ``titles``."""
    corrections = read_corrections(Workspace(home).home)
    shows = dict.fromkeys(parse_title(title).show_key for title in titles)
    return [corrections[show] for show in shows if show in corrections]


def neighbour_lines(neighbours: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Formats each neighbour as a line: cosine, title, categories, kinds, channels, count of editions."""
    width = min(60, max((len(neighbour["title"]) for neighbour in neighbours), default=0))
    for neighbour in neighbours:
        correction_note = (
            f" ({corrected_on(neighbour['corrected_at'])})" if "corrected_at" in neighbour else ""
        )
        kinds = f" ({', '.join(neighbour['kinds'])})" if neighbour["kinds"] else ""
        channels = ", ".join(neighbour["channels"][:3])
        description = f"{', '.join(neighbour['categories'])}{kinds}{correction_note}  [{channels}]"
        count = neighbour["editions"]
        editions_text = f"  and {count} more edition{'s' * (count > 1)}" if count else ""
        yield f"{neighbour['cosine']:.3f}  {neighbour['title']:<{width}}  {description}{editions_text}"


def explain_titles(
    home: str, left: str, right: str | None, model: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Explains why two titles are near or, without ``right``, how the categories of ``left`` were decided.

    Returns:
        The explanation as a JSON document, and as lines of text.

    Raises:
        SearchError: A title has no known words.
        HomeError: There is no champion yet.
        EnrichError: The champion model stores no votes for categories.
    """
    if right is None:
        from tasks.enrich.explain import decide  # takes 0.3 s
        from tasks.enrich.model import CategoryModel

        folder = find_champion(home, model).folder
        result = decide(CategoryModel(folder, read_corrections(Workspace(home).home)), left)
        corrections, lines = find_corrections(home, left), decision_lines(result)
    else:
        result = explain(open_champion(home, model=model), left, right)
        corrections, lines = find_corrections(home, left, right), explanation_lines(result)
    document = {**asdict(result), "corrected": [correction.document for correction in corrections]}
    return document, [*map(str, corrections), *lines]


def decision_lines(decision: "Decision") -> Iterator[str]:
    """Returns lines of text that explain how the categories of a title were decided."""
    categories = ", ".join(decision.categories)
    if decision.by == "edition":
        yield f"“{decision.title}”: {categories}, corrected by a person at the nearest edition of the show"
    if decision.guide:
        yield f"“{decision.title}”: the guide says: {', '.join(decision.guide)}"
    for kind in decision.kinds:
        yield f"“{decision.title}”: {kind.kind}, {KIND_REASONS[kind.source].format(kind.probability)}"
    if not decision.predicted:
        yield f"“{decision.title}”: no category is predicted, because no neighbour votes"
        return
    confidence_text = (
        f"confidence unknown: {decision.unsure}"
        if decision.unsure
        else f"confidence {decision.confidence:.3f}"
    )
    votes = ", ".join(f"{category} {count}" for category, count in decision.votes.items())
    yield f"“{decision.title}”: predicted: {decision.predicted}, {confidence_text}"
    width = max(len(candidate.category) for candidate in decision.candidates)
    yield f"\n{'':{width}}  score   vote  linear model"
    for candidate in decision.candidates:
        linear_text = "" if candidate.linear is None else f"  {candidate.linear:.3f}"
        yield f"{candidate.category:<{width}}  {candidate.score:.3f}  {candidate.vote:.3f}{linear_text}"
    yield f"\nof {len(decision.voters)} voters: {votes}"
    width = min(60, max(len(voter.title) for voter in decision.voters))
    for voter in decision.voters:
        yield f"  {voter.cosine:.3f}  {voter.title:<{width}}  {', '.join(voter.categories)}"


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Returns lines of text that explain a cosine: contributions of pairs of words, effects of words."""
    rank_text = f", number {explanation.rank} among the titles nearest to it" if explanation.rank else ""
    yield f"“{explanation.left}” and “{explanation.right}”: cosine {explanation.cosine:.3f}{rank_text}"
    supporting_pairs = [pair for pair in explanation.pairs if pair.contribution >= MIN_CONTRIBUTION]
    opposing_pairs = [pair for pair in reversed(explanation.pairs) if pair.contribution <= -MIN_CONTRIBUTION]
    for heading, pairs in (("brings them together", supporting_pairs), ("keeps them apart", opposing_pairs)):
        if pairs:
            yield f"\n{heading}:"
        for pair in pairs[:MAX_PAIRS]:
            words = pair.left if pair.left == pair.right else f"{pair.left} ~ {pair.right}"
            yield f"  {pair.contribution:+.3f}  {words}"
    if explanation.without:
        yield f"\n“{explanation.left}” without a word:"
    width = max((len(removal.word) for removal in explanation.without), default=0)
    for removal in explanation.without:
        rank_text = f", number {removal.rank}" if removal.rank else ""
        nearest = ", ".join(removal.nearest)
        yield f"  without {removal.word:<{width}}  cosine {removal.cosine:.3f}{rank_text}; nearest: {nearest}"


def find_duplicates(home: str, minimum_cosine: float) -> list[dict[str, Any]]:
    """Returns the pairs of titles of the last run whose cosine is at least ``minimum_cosine``, nearest first.

    Raises:
        HomeError: No run has finished in this home, or its model is missing.
    """
    search = TitleSearch.open(Path(read_latest(home, "model")["model"]))
    vectors = np.asarray(search.vectors_without_context)
    pairs, cosines = find_near_duplicates(vectors, minimum_cosine, np.random.default_rng(0))
    titles, channels = search.columns["title"], search.columns["channels"]
    return [
        {
            "titles": [titles[row] for row in pair],
            "cosine": round(cosine, 4),
            "channels": [channels[row] for row in pair],
        }
        for pair, cosine in zip(pairs.tolist(), cosines.tolist(), strict=True)
    ]


def duplicate_line(pair: Mapping[str, Any]) -> str:
    """Formats a pair of nearly equal titles as a line: cosine, and both titles with their channels."""
    titles = zip(pair["titles"], pair["channels"], strict=True)
    return f"{pair['cosine']:.3f}  " + "  =  ".join(
        f"{title} [{', '.join(title_channels[:2])}]" for title, title_channels in titles
    )
