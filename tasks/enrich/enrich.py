"""A guide with categories where it has none, by a person's correction, else by what the same show has
elsewhere, else by the vote; and with episode numbers (episodes.py) where these are asked for.

The vote is asked about programmes without categories only: categories that a table lacks are
nearly always none of the model's labels, and the vote would choose among these.
"""

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from storage.catalogue.connection import bounded_memory
from storage.episodes.numbers import fold_sub_title
from tasks.enrich.episodes import Episode, Numbers, find_numbers
from tasks.enrich.model import CategoryModel, Voted
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import Source
from tasks.enrich.survey import Survey, read_survey
from tasks.enrich.titles import GuideTitles, gather_titles
from tasks.enrich.vocabulary import Vocabulary, read_vocabulary
from tasks.pool import open_pool

EXAMPLES = 20
_BATCH = 8192  # programmes decided on at a time
APART = 16 << 20  # bytes of a file, mostly compressed; starting a process takes a second
MEMORY = 100_000_000  # bytes of DuckDB's; a guide of any size is filled in less than 500 MB
GUIDE, MODEL, VOTE = "the same show in this guide", "the same show in the home's guides", "the vote"
CORRECTED, EDITION = "a person's correction", "a person's correction of the nearest edition of the show"


@dataclass(frozen=True)
class Answer:
    """What is added to the programmes of a title that have no categories."""

    names: tuple[str, ...]
    by: str
    confidence: float = 1.0  # the least of the names that were voted for


@dataclass(frozen=True)
class Example:
    """A title that gets names."""

    title: str
    answer: Answer


@dataclass
class Report:
    """Counts of programmes, and how sure the vote is."""

    programmes: int = 0
    unreadable: int = 0  # elements of which nothing could be read
    with_categories: int = 0
    filled: Counter[str] = field(default_factory=Counter)  # programmes without categories, by what told them
    beside: int = 0  # programmes with categories that got names beside them
    placeholders: int = 0  # programmes without categories whose title names none
    levels: list[Voted] = field(default_factory=list)
    without_number: int = 0  # programmes with a sub-title and without an episode number
    numbered: int = 0  # of them those that got one
    titles_asked: int = 0  # titles that were voted on
    examples: list[Example] = field(default_factory=list)
    damage: str = ""

    @property
    def missing(self) -> int:
        """Programmes without categories."""
        return self.programmes - self.with_categories


def read_guide(source: Source, folder: Path, options: EnrichOptions) -> tuple[Survey, GuideTitles]:
    """Reads a guide once; its files lie in the folder, and it is ready to be planned for.

    One of some size is read in a process of its own, whose memory is not needed beside the model's.
    """
    with open_pool("processes", int(source.feed.bytes > APART)) as submit:
        return submit(_read_guide, source, folder, options).result()


def _read_guide(source: Source, folder: Path, options: EnrichOptions) -> tuple[Survey, GuideTitles]:
    with bounded_memory(MEMORY):
        return read_survey(source, folder, options), gather_titles(folder)


@dataclass(frozen=True)
class Enrichment:
    """A surveyed guide and what is to be added to it."""

    source: Source
    survey: Survey
    guide: GuideTitles
    vocabulary: Vocabulary
    options: EnrichOptions
    answers: dict[int, Answer]  # of titles
    numbers: dict[Episode, Numbers]
    report: Report

    def additions(self) -> Iterator[tuple[int, bytes]]:
        """Offsets, rising, and what is inserted there; counts into the report."""
        report, of_raw = self.report, self.guide.of_raw
        columns = ["title", "categories", "place", "indent", "sub_title", "number_place", "number_indent"]
        file = pq.ParquetFile(self.guide.folder / "programmes.parquet", pre_buffer=False)
        for batch in file.iter_batches(_BATCH, columns=columns, use_threads=False):
            rows = zip(*(column.to_pylist() for column in batch.columns))
            for title, categories, place, indent, sub_title, number_place, number_indent in rows:
                number = of_raw[title]
                names: Sequence[str] = ()
                answer = self.answers.get(number)
                if categories:
                    report.with_categories += 1
                    if self.options.every:
                        told = self.vocabulary.of_categories(categories)
                        if answer and answer.by == CORRECTED:
                            told = answer.names
                        names = [name for name in told if name not in categories]
                        report.beside += bool(names) and place >= 0
                elif answer:
                    names = answer.names
                    report.filled[answer.by] += bool(names) and place >= 0
                else:
                    report.placeholders += bool(self.guide.placeholder[number])
                report.programmes += 1
                if names and place >= 0:
                    told = [f"<category>{html.escape(name, quote=False)}</category>" for name in names]
                    yield place, self._markup(told, indent, answer.confidence if answer else 1.0)
                if number_place >= 0:
                    report.without_number += 1
                    if found := self.numbers.get((number, fold_sub_title(sub_title))):
                        report.numbered += 1
                        told = [
                            f'<episode-num system="{system}">{html.escape(text, quote=False)}</episode-num>'
                            for system, text in found
                        ]
                        yield number_place, self._markup(told, number_indent, 1.0)

    def _markup(self, elements: Iterable[str], indent: bytes, confidence: float) -> bytes:
        note = f"<!-- guidespace {confidence:.2f} -->" if self.options.mark else ""
        encoded = ((element + note).encode(*self._charset) for element in elements)
        return b"".join(indent + text for text in encoded)

    @property
    def _charset(self) -> tuple[str, str]:
        """UTF-8 where the file is declared so, else ASCII with references, which every encoding holds."""
        return ("utf-8", "strict") if self.survey.encoding == "utf-8" else ("ascii", "xmlcharrefreplace")

    def pieces(self) -> Iterator[bytes]:
        """The guide with what is added, in its own encoding."""
        yield from self.source.encode(insert(self.source.pieces(), self.additions()))


def insert(pieces: Iterable[bytes], additions: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """Bytes with others inserted at offsets, which rise."""
    place, text = next(additions, (-1, b""))
    begin = 0
    for piece in pieces:
        end, parts, cut = begin + len(piece), [], 0
        while begin < place <= end:
            parts += (piece[cut : place - begin], text)
            cut = place - begin
            place, text = next(additions, (-1, b""))
        yield b"".join([*parts, piece[cut:]])
        begin = end
    assert place < 0, f"an addition at {place} lies behind the end, {begin}"


def plan(
    source: Source,
    survey: Survey,
    guide: GuideTitles,
    model: CategoryModel,
    options: EnrichOptions,
    home_guide: Path | None = None,
) -> Enrichment:
    """Decides what is added to a guide that was read.

    Args:
        home_guide: Folder of the home's newest Guide, which is asked for episode numbers too.
    """
    vocabulary = read_vocabulary(options.vocabulary, model.spellings)
    report, answers, unknown = Report(unreadable=survey.unreadable), {}, []
    for title, show in enumerate(guide.show_key):
        if guide.placeholder[title]:
            continue
        row, correction = model.row_of.get(show), model.corrections.get(show)
        if correction:  # where a table has no name for it none is written, nor what guides say
            answers[title] = Answer(_of_labels(vocabulary, correction.categories), CORRECTED)
            continue
        told = vocabulary.of_categories(guide.categories.get(title, ())), GUIDE
        if not told[0] and row is not None:
            told = _of_labels(vocabulary, model.labels[row]), MODEL
        if told[0]:
            answers[title] = Answer(*told)
        elif guide.has_gap[title]:
            unknown.append(title)
    wanted = np.array(unknown, dtype=np.int64)
    report.titles_asked = len(wanted)
    with bounded_memory(MEMORY):
        queries = model.embed(guide, wanted)
    neighbours = model.neighbours(queries)
    titles = [guide.title[title] for title in unknown]
    for place, labels in model.corrected_editions(titles, queries, neighbours).items():
        answers[unknown[place]] = Answer(_of_labels(vocabulary, labels), EDITION)
    spoken = np.array([guide.language[title] for title in wanted], dtype=str)
    for level in range(vocabulary.levels):
        voted = model.vote(neighbours, spoken, vocabulary, level, options.minimum_precision)
        written = np.zeros_like(voted.chosen)
        for place in np.flatnonzero(voted.chosen):
            before, name = answers.get(unknown[place]), voted.names[place]
            if before and before.by == EDITION:
                continue
            if level and not (before and vocabulary.fits(before.names[-1], name)):
                continue
            names = (*(before.names if before else ()), name)
            sure = min(before.confidence if before else 1.0, float(voted.confidence[place]))
            answers[unknown[place]] = Answer(names, VOTE, sure)
            written[place] = True
        report.levels.append(replace(voted, chosen=written))
    chosen = [title for title in unknown if title in answers and answers[title].by == VOTE]
    step = max(1, len(chosen) // EXAMPLES)
    report.examples += [Example(guide.title[title], answers[title]) for title in chosen[::step][:EXAMPLES]]
    numbers = find_numbers(guide, home_guide) if options.episodes else {}
    return Enrichment(source, survey, guide, vocabulary, options, answers, numbers, report)


def _of_labels(vocabulary: Vocabulary, labels: Sequence[str]) -> tuple[str, ...]:
    """Names of a title's labels, broadest level first."""
    names = [vocabulary.of_label(label) for label in labels]
    by_level = (own[level] for level in range(vocabulary.levels) for own in names)
    return tuple(dict.fromkeys(filter(None, by_level)))
