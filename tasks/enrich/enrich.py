"""Decides which categories and episode numbers are added to a guide, and inserts them.

Categories come from a user's correction, else from other programmes of the same show, else from the
predictor. Episode numbers, which are optional, come from other airings of the episode (episodes.py).

Categories are predicted only for programmes that have no category. A programme whose categories are all
missing in the vocabulary table gets no prediction: the model nearly always lacks these categories, too, so it
could not predict their names.
"""

import html
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from storage.episodes.numbers import fold_sub_title
from tasks.enrich.episodes import NUMBERS, Episode, Numbers, find_numbers, has_number
from tasks.enrich.for_players import PlayerNames, prepare_names
from tasks.enrich.insertion import add_declaration, insert_elements
from tasks.enrich.model import CategoryModel, NamePredictions
from tasks.enrich.players.base import DECLARATION
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.enrich.survey import Survey, read_survey
from tasks.enrich.titles import GuideTitles, gather_titles, read_rows
from tasks.enrich.vocabulary import Vocabulary, distinct_names, read_vocabulary
from tasks.pool import open_pool

MAX_EXAMPLES = 20  # maximum number of predictions that the report shows
SEPARATE_PROCESS_BYTES = 16 << 20  # a larger guide is read in a separate process, which takes 1 s to start
# Sources of categories, in the words of the report: "12 filled by prediction".
FROM_GUIDE, FROM_HOME_GUIDES = "from the same show in this guide", "from the same show in the home's guides"
FROM_PREDICTION = "by prediction"
FROM_CORRECTION = "by a person's correction"
FROM_EDITION = "by a person's correction of the nearest edition of the show"


@dataclass(frozen=True)
class TitleCategories:
    """Categories of a title. They are added to each programme of the title that has no category."""

    names: tuple[str, ...]  # names of the categories
    source: str  # FROM_GUIDE, FROM_HOME_GUIDES, FROM_PREDICTION, FROM_CORRECTION or FROM_EDITION
    confidence: float = 1.0  # lowest probability that a name is correct


@dataclass(frozen=True)
class Example:
    """Title with predicted categories, shown in the report."""

    title: str
    categories: TitleCategories


@dataclass
class Report:
    """Counts of the programmes that an enrichment changes, and the results of its predictions."""

    programmes: int = 0  # all programmes of the guide
    unreadable: int = 0  # elements that could not be read
    with_categories: int = 0  # programmes that have categories in the guide
    # programmes without categories that got some, by source of the categories
    filled_by_source: Counter[str] = field(default_factory=Counter)
    extended: int = 0  # programmes with categories that got additional categories
    placeholders: int = 0  # programmes without categories whose title names no programme
    predictions_by_level: list[NamePredictions] = field(default_factory=list)  # levels of the vocabulary
    without_number: int = 0  # programmes with a sub-title and without an episode number
    numbers_added: int = 0  # programmes among ``without_number`` that got a number
    # programmes that got a name for a player, by player and name
    written: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    categories: set[str] = field(default_factory=set)  # of the enriched guide; empty without players
    predicted_title_count: int = 0  # number of titles for which the model predicted categories
    examples: list[Example] = field(default_factory=list)  # sample of predictions
    damage: str = ""  # why the guide ends early; "" if it is not damaged

    @property
    def missing(self) -> int:
        """Number of programmes without categories in the guide."""
        return self.programmes - self.with_categories


def read_guide(source: Source, folder: Path, options: EnrichOptions) -> tuple[Survey, GuideTitles]:
    """Reads a guide once, writes its programmes as Parquet files into a folder, and groups them by title.

    A large guide is read in a separate process, so that the memory for reading is freed before the model is
    loaded.
    """
    with open_pool("processes", int(source.feed.bytes > SEPARATE_PROCESS_BYTES)) as submit:
        return submit(_read_guide, source, folder, options).result()


def _read_guide(source: Source, folder: Path, options: EnrichOptions) -> tuple[Survey, GuideTitles]:
    """Does the work of ``read_guide`` in the current process."""
    return read_survey(source, folder, options), gather_titles(folder)


@dataclass(kw_only=True)
class GuideEnricher:
    """Adds elements to a guide. Counts them in ``report`` while ``pieces`` yields the enriched guide."""

    source: Source  # bytes of the guide
    survey: Survey
    guide: GuideTitles
    vocabulary: Vocabulary
    options: EnrichOptions
    title_categories: dict[int, TitleCategories]  # categories to add, by index of the title in ``guide``
    numbers: dict[Episode, Numbers]  # episode numbers to add
    players: PlayerNames | None  # names for players; None if the options select no player
    report: Report  # complete after the last item of ``pieces`` or ``additions``

    def additions(self) -> Iterator[tuple[int, bytes]]:
        """Yields (offset in the guide, bytes to insert there) by ascending offset."""
        report = self.report
        columns = ["title", "categories", "place", "indent", "sub_title", "number_place", "number_indent"]
        for row in read_rows(self.guide.folder / "programmes.parquet", [*columns, *NUMBERS]):
            title, categories, place, indent, sub_title, number_place, number_indent, *numbers = row
            title_id = self.guide.title_of_raw[title]
            title_categories = self.title_categories.get(title_id)
            new_numbers: Numbers = ()
            if number_place >= 0:
                new_numbers = self.numbers.get((title_id, fold_sub_title(sub_title)), ())
            names = self._select_names(title_categories, categories) if place >= 0 else []
            confidence = title_categories.confidence if title_categories else 1.0
            if self.players:
                new_numbers = () if self.players.excludes_number(categories or ()) else new_numbers
                is_numbered = bool(new_numbers) or has_number(*numbers)
                if place >= 0 and (categories or not self.guide.is_placeholder[title_id]):
                    names, name_confidence, player_names = self.players.select_names(
                        title_id, categories or (), names, is_numbered
                    )
                    confidence = min(confidence, name_confidence)
                    report.categories.update(categories or (), names)
                    for player, name in player_names:
                        report.written[player][name] += 1
            report.programmes += 1
            report.with_categories += bool(categories)
            if categories:
                report.extended += bool(names)
            elif title_categories:
                report.filled_by_source[title_categories.source] += bool(names)
            else:
                report.placeholders += bool(self.guide.is_placeholder[title_id])
            if names:
                texts = (html.escape(name, quote=False) for name in names)
                category_xml = [f"<category>{text}</category>" for text in texts]
                yield place, self._encode_elements(category_xml, indent, confidence)
            report.without_number += number_place >= 0
            if new_numbers:
                report.numbers_added += 1
                episode_xml = [
                    f'<episode-num system="{system}">{html.escape(text, quote=False)}</episode-num>'
                    for system, text in new_numbers
                ]
                yield number_place, self._encode_elements(episode_xml, number_indent, 1.0)

    def _select_names(
        self, title_categories: TitleCategories | None, programme_categories: Sequence[str]
    ) -> list[str]:
        """Returns the names to add to a programme, given the categories of its title and its categories."""
        if not programme_categories:
            return [*title_categories.names] if title_categories else []
        if not self.options.every:
            return []
        if title_categories and title_categories.source == FROM_CORRECTION:
            names = title_categories.names
        else:
            names = self.vocabulary.of_categories(programme_categories)
        return [name for name in names if name not in programme_categories]

    def _encode_elements(self, elements: Iterable[str], indent: bytes, confidence: float) -> bytes:
        """Encodes XML elements for insertion, each after the indent.

        With the option ``mark``, a comment with the confidence follows each element.
        """
        comment = f"<!-- guidespace {confidence:.2f} -->" if self.options.mark else ""
        encoded_elements = ((element + comment).encode(*self._charset) for element in elements)
        return b"".join(indent + text for text in encoded_elements)

    @property
    def _charset(self) -> tuple[str, str]:
        """Codec and error handler of added text: UTF-8, or ASCII with references (&#233;) in other guides."""
        return ("utf-8", "strict") if self.survey.encoding == "utf-8" else ("ascii", "xmlcharrefreplace")

    def pieces(self) -> Iterator[bytes]:
        """Yields the bytes of the enriched guide, in the encoding of the original guide."""
        pieces = insert_elements(self.source.pieces(), self.additions())
        if self.options.needs(DECLARATION):
            pieces = add_declaration(pieces, "utf-16" if self.source.codec else self.survey.encoding)
        yield from self.source.encode(pieces)


def open_enricher(
    source: Source,
    survey: Survey,
    guide: GuideTitles,
    model: CategoryModel,
    options: EnrichOptions,
    home_guide: Path | None = None,
) -> GuideEnricher:
    """Decides which elements are added to a guide.

    Args:
        source: Guide as a byte stream.
        survey, guide: Results of ``read_guide``.
        model: Model that predicts categories.
        options: Options that select which elements are added.
        home_guide: Folder of the home's newest Guide, from which episode numbers are copied as well.
    """
    vocabulary = read_vocabulary(options.vocabulary, model.spellings)
    report = Report(unreadable=survey.unreadable, damage=survey.damage)
    categories = _look_up_categories(guide, model, vocabulary)
    titles_with_gap = np.flatnonzero(guide.has_gap & ~guide.is_placeholder).tolist()
    title_ids = np.array([title for title in titles_with_gap if title not in categories], dtype=np.int64)
    report.predicted_title_count = len(title_ids)
    queries = model.embed(guide, title_ids)
    neighbours = model.neighbours(queries)
    titles = [guide.titles[title] for title in title_ids]
    for position, labels in model.corrected_editions(titles, queries.vectors, neighbours).items():
        names = distinct_names(map(vocabulary.of_label, labels))
        categories[int(title_ids[position])] = TitleCategories(names, FROM_EDITION)
    languages = np.array([guide.languages[title] for title in title_ids], dtype=str)
    predictions: NamePredictions | None = None  # predictions at the level above, then at the current level
    for level in range(vocabulary.levels):
        predictions = model.predict(
            neighbours, languages, vocabulary, level, options.minimum_precision, predictions
        )
        is_written = np.zeros_like(predictions.is_selected)
        for position in np.flatnonzero(predictions.is_selected):
            title = int(title_ids[position])
            broader_categories = categories.get(title, TitleCategories((), FROM_PREDICTION))
            if broader_categories.source != FROM_EDITION:
                names = (*broader_categories.names, predictions.names[position])
                confidence = min(broader_categories.confidence, float(predictions.confidence[position]))
                categories[title] = TitleCategories(names, FROM_PREDICTION, confidence)
                is_written[position] = True
        report.predictions_by_level.append(replace(predictions, is_selected=is_written))
    predicted_titles = sorted(title for title, added in categories.items() if added.source == FROM_PREDICTION)
    examples = predicted_titles[:: max(1, len(predicted_titles) // MAX_EXAMPLES)][:MAX_EXAMPLES]
    report.examples += [Example(guide.titles[title], categories[title]) for title in examples]
    names_by_title = {title: added.names for title, added in categories.items()}
    return GuideEnricher(
        source=source,
        survey=survey,
        guide=guide,
        vocabulary=vocabulary,
        options=options,
        title_categories=categories,
        numbers=find_numbers(guide, home_guide) if options.adds_numbers else {},
        players=prepare_names(guide, model, options, names_by_title) if options.players else None,
        report=report,
    )


def _look_up_categories(
    guide: GuideTitles, model: CategoryModel, vocabulary: Vocabulary
) -> dict[int, TitleCategories]:
    """Returns the categories of the titles that need no prediction, by index of the title.

    These are the titles that a user has corrected, and the titles with categories in the guide or the model.
    """
    title_categories: dict[int, TitleCategories] = {}
    for title, show in enumerate(guide.show_keys):
        if guide.is_placeholder[title]:
            continue
        row, correction = model.row_of.get(show), model.corrections.get(show)
        if correction:  # nothing is added if the vocabulary has no name for these categories
            names = distinct_names(map(vocabulary.of_label, correction.categories))
            title_categories[title] = TitleCategories(names, FROM_CORRECTION)
            continue
        names, source = vocabulary.of_categories(guide.category_lists.get(title, ())), FROM_GUIDE
        if not names and row is not None:
            names, source = distinct_names(map(vocabulary.of_label, model.labels[row])), FROM_HOME_GUIDES
        if names:
            title_categories[title] = TitleCategories(names, source)
    return title_categories
