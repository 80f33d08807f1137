"""Decides which categories and episode numbers are added to a guide, and inserts them.

Categories come from a user's correction, else from other programmes of the same show, else from the
predictor. Episode numbers, which are optional, come from other airings (episodes.py). Categories are
predicted only for programmes that have none, because the model can predict only its labels, and a category
that is missing in the vocabulary table is nearly always missing in the model too.
"""

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from storage.episodes.numbers import fold_sub_title
from tasks.enrich.episodes import NUMBERS, Episode, Numbers, find_numbers, has_number
from tasks.enrich.for_players import PlayerNames, prepare_names
from tasks.enrich.insertion import declare, insert
from tasks.enrich.model import CategoryModel, NamePredictions
from tasks.enrich.players.base import DECLARATION
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.enrich.survey import Survey, read_survey
from tasks.enrich.titles import GuideTitles, gather_titles, read_rows
from tasks.enrich.vocabulary import Vocabulary, read_vocabulary
from tasks.pool import open_pool

EXAMPLES = 20  # maximum number of predictions that the report shows
SEPARATE_PROCESS_BYTES = 16 << 20  # file size from which a guide is read in another process (starts in 1 s)
# Sources of categories, as named in the report.
GUIDE, MODEL = "the same show in this guide", "the same show in the home's guides"
PREDICTION = "prediction"
CORRECTED, EDITION = "a person's correction", "a person's correction of the nearest edition of the show"


@dataclass(frozen=True)
class Answer:
    """Categories to add to the programmes of a title that have none."""

    names: tuple[str, ...]  # names of the categories
    by: str  # source of the names: GUIDE, MODEL, PREDICTION, CORRECTED or EDITION
    confidence: float = 1.0  # lowest probability that a name is correct


@dataclass(frozen=True)
class Example:
    """Title with predicted categories, shown in the report."""

    title: str
    answer: Answer


@dataclass
class Report:
    """Counts of the programmes that an enrichment changes, and the results of its predictions."""

    programmes: int = 0  # all programmes of the guide
    unreadable: int = 0  # elements that could not be read
    with_categories: int = 0  # programmes that have categories in the guide
    # programmes that got their first categories, by source of the categories
    filled: Counter[str] = field(default_factory=Counter)
    extended: int = 0  # programmes with categories that got additional categories
    placeholders: int = 0  # programmes without categories whose title names no programme
    levels: list[NamePredictions] = field(default_factory=list)  # predictions by level of the vocabulary
    without_number: int = 0  # programmes with a sub-title and without an episode number
    numbered: int = 0  # programmes among ``without_number`` that got a number
    written: Mapping[str, Counter[str]] = field(default_factory=dict)  # programmes by player and added name
    titles_voted_on: int = 0  # number of titles whose categories were predicted
    examples: list[Example] = field(default_factory=list)  # sample of predictions
    damage: str = ""  # why the guide ends early; "" if it is not damaged

    @property
    def missing(self) -> int:
        """Number of programmes without categories in the guide."""
        return self.programmes - self.with_categories


def read_guide(source: Source, folder: Path, options: EnrichOptions) -> tuple[Survey, GuideTitles]:
    """Reads a guide once, writes its tables into a folder, and groups its titles.

    A large guide is read in a separate process, so that its memory is free before the model is loaded.
    """
    with open_pool("processes", int(source.feed.bytes > SEPARATE_PROCESS_BYTES)) as submit:
        return submit(_read_guide, source, folder, options).result()


def _read_guide(source: Source, folder: Path, options: EnrichOptions) -> tuple[Survey, GuideTitles]:
    """Does the work of ``read_guide`` in the current process."""
    return read_survey(source, folder, options), gather_titles(folder)


@dataclass(frozen=True)
class Enrichment:
    """Guide with the elements to add to it."""

    source: Source  # bytes of the guide
    survey: Survey
    guide: GuideTitles
    vocabulary: Vocabulary
    options: EnrichOptions
    answers: dict[int, Answer]  # categories to add, by index of the title in ``guide.title``
    numbers: dict[Episode, Numbers]  # episode numbers to add
    players: PlayerNames | None  # names for players; None if the options select no player
    report: Report

    def additions(self) -> Iterator[tuple[int, bytes]]:
        """Yields (offset, bytes to insert there) by ascending offset, and updates the report."""
        report = self.report
        columns = ["title", "categories", "place", "indent", "sub_title", "number_place", "number_indent"]
        for row in read_rows(self.guide.folder / "programmes.parquet", [*columns, *NUMBERS]):
            title, categories, place, indent, sub_title, number_place, number_indent, *numbers = row
            title_id = self.guide.title_of_raw[title]
            answer = self.answers.get(title_id)
            pairs = self.numbers.get((title_id, fold_sub_title(sub_title)), ()) if number_place >= 0 else ()
            names = self._select_names(answer, categories) if place >= 0 else []
            confidence = answer.confidence if answer else 1.0
            if self.players:
                pairs = () if self.players.excludes_number(categories or ()) else pairs
                is_numbered = bool(pairs) or has_number(*numbers)
                if place >= 0 and (categories or not self.guide.placeholder[title_id]):
                    names, name_confidence = self.players.extend(
                        title_id, categories or (), names, is_numbered
                    )
                    confidence = min(confidence, name_confidence)
            report.programmes += 1
            report.with_categories += bool(categories)
            if categories:
                report.extended += bool(names)
            elif answer:
                report.filled[answer.by] += bool(names)
            else:
                report.placeholders += bool(self.guide.placeholder[title_id])
            if names:
                texts = (html.escape(name, quote=False) for name in names)
                category_xml = [f"<category>{text}</category>" for text in texts]
                yield place, self._markup(category_xml, indent, confidence)
            report.without_number += number_place >= 0
            if pairs:
                report.numbered += 1
                episode_xml = [
                    f'<episode-num system="{system}">{html.escape(text, quote=False)}</episode-num>'
                    for system, text in pairs
                ]
                yield number_place, self._markup(episode_xml, number_indent, 1.0)

    def _select_names(self, answer: Answer | None, categories: Sequence[str]) -> list[str]:
        """Returns the names of the vocabulary to add to a programme with these categories."""
        if not categories:
            return [*answer.names] if answer else []
        if not self.options.every:
            return []
        if answer and answer.by == CORRECTED:
            names = answer.names
        else:
            names = self.vocabulary.of_categories(categories)
        return [name for name in names if name not in categories]

    def _markup(self, elements: Iterable[str], indent: bytes, confidence: float) -> bytes:
        """Encodes XML elements, each after an indent and optionally before a comment with the confidence."""
        note = f"<!-- guidespace {confidence:.2f} -->" if self.options.mark else ""
        encoded_elements = ((element + note).encode(*self._charset) for element in elements)
        return b"".join(indent + text for text in encoded_elements)

    @property
    def _charset(self) -> tuple[str, str]:
        """Codec and error handler of added text: UTF-8 if declared, else ASCII with character references."""
        return ("utf-8", "strict") if self.survey.encoding == "utf-8" else ("ascii", "xmlcharrefreplace")

    def pieces(self) -> Iterator[bytes]:
        """Yields the enriched guide in the encoding of the input."""
        pieces = insert(self.source.pieces(), self.additions())
        if self.options.needs(DECLARATION):
            pieces = declare(pieces, "utf-16" if self.source.codec else self.survey.encoding)
        yield from self.source.encode(pieces)


def plan(
    source: Source,
    survey: Survey,
    guide: GuideTitles,
    model: CategoryModel,
    options: EnrichOptions,
    home_guide: Path | None = None,
) -> Enrichment:
    """Decides what is added to a guide.

    Args:
        source: Guide as a byte stream.
        survey, guide: Results of ``read_guide``.
        model: Model that predicts categories.
        options: Options that select what is added.
        home_guide: Folder of the home's newest Guide, from which episode numbers are copied as well.
    """
    vocabulary = read_vocabulary(options.vocabulary, model.spellings)
    report, answers = Report(unreadable=survey.unreadable), _find_answers(guide, model, vocabulary)
    gaps = np.flatnonzero(guide.has_gap & ~guide.placeholder).tolist()
    unanswered = [title for title in gaps if title not in answers]
    title_ids = np.array(unanswered, dtype=np.int64)
    report.titles_voted_on = len(title_ids)
    queries = model.embed(guide, title_ids)
    neighbours = model.neighbours(queries)
    titles = [guide.title[title] for title in unanswered]
    for position, labels in model.corrected_editions(titles, queries.vectors, neighbours).items():
        answers[unanswered[position]] = Answer(_names_of_labels(vocabulary, labels), EDITION)
    languages = np.array([guide.language[title] for title in title_ids], dtype=str)
    above: NamePredictions | None = None
    for level in range(vocabulary.levels):
        above = model.predict(neighbours, languages, vocabulary, level, options.minimum_precision, above)
        is_written = np.zeros_like(above.chosen)
        for position in np.flatnonzero(above.chosen):
            answer, name = answers.get(unanswered[position]), above.names[position]
            if answer and answer.by == EDITION:
                continue
            names = (*(answer.names if answer else ()), name)
            confidence = min(answer.confidence if answer else 1.0, float(above.confidence[position]))
            answers[unanswered[position]] = Answer(names, PREDICTION, confidence)
            is_written[position] = True
        report.levels.append(replace(above, chosen=is_written))
    predicted = [title for title in unanswered if title in answers and answers[title].by == PREDICTION]
    examples = predicted[:: max(1, len(predicted) // EXAMPLES)][:EXAMPLES]
    report.examples += [Example(guide.title[title], answers[title]) for title in examples]
    numbers = find_numbers(guide, home_guide) if options.adds_numbers else {}
    players = None
    if options.players:
        players = prepare_names(
            guide, model, options, {title: answer.names for title, answer in answers.items()}
        )
        report.written = players.written
    return Enrichment(source, survey, guide, vocabulary, options, answers, numbers, players, report)


def _find_answers(guide: GuideTitles, model: CategoryModel, vocabulary: Vocabulary) -> dict[int, Answer]:
    """Returns the categories of titles that need no vote.

    These are titles that a user has corrected, and titles with categories in the guide or the model.
    """
    answers: dict[int, Answer] = {}
    for title, show in enumerate(guide.show_key):
        if guide.placeholder[title]:
            continue
        row, correction = model.row_of.get(show), model.corrections.get(show)
        if correction:  # nothing is written if the vocabulary has no name for its categories
            answers[title] = Answer(_names_of_labels(vocabulary, correction.categories), CORRECTED)
            continue
        names, source = vocabulary.of_categories(guide.categories.get(title, ())), GUIDE
        if not names and row is not None:
            names, source = _names_of_labels(vocabulary, model.labels[row]), MODEL
        if names:
            answers[title] = Answer(names, source)
    return answers


def _names_of_labels(vocabulary: Vocabulary, labels: Sequence[str]) -> tuple[str, ...]:
    """Returns the distinct names that the vocabulary has for labels of the model, broadest level first."""
    names = [vocabulary.of_label(label) for label in labels]
    by_level = (levels[level] for level in range(vocabulary.levels) for levels in names)
    return tuple(dict.fromkeys(filter(None, by_level)))
