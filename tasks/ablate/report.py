"""Formats the report of an ablation: a table of effects, a sentence per block, and blocks without benefit."""

from collections.abc import Sequence

from tasks.ablate.effects import AGREEMENT, CELLS, OOV, OVERALL, SHOWS, Effect
from tasks.scoring.folds import Figure
from tasks.scoring.protocols import PROTOCOLS

FORM_NAMES = {"title_only": "title only", "title_context": "title and context"}
VERDICTS = {True: "pays", False: "costs", None: "no difference"}  # by the sign of the effect
NOTE = (
    "A block is worth the quality of the preset minus the quality without the block, on the same held-out "
    "titles, averaged over seeds. Quality is the mean of accuracy and precision at 10. For clusters, it is "
    "the B-cubed F of all labelled titles. ± is 1.96 standard errors of a bootstrap over families (titles "
    "with the same first word, in all folds). About one interval in twenty does not contain the true value."
)


def format_figure(figure: Figure) -> str:
    """Formats a mean and its margin, such as ``.031 ± .006``."""
    return f"{_format_number(figure.value)} ± {_format_number(figure.margin)}"


def _format_number(value: float) -> str:
    """Formats a number with three decimals, without a leading zero and with a true minus sign."""
    text = f"{abs(value):.3f}".removeprefix("0")
    return f"−{text}" if value < 0 and text != ".000" else text


def describe_effect(effect: Effect) -> str:
    """Returns a sentence that says how much quality a block adds: "Bigrams are worth .031 ± .006 on …"."""
    figures, subject_and_verb = effect.figures, effect.block.subject
    if AGREEMENT in figures:
        text = f"{subject_and_verb} worth {format_figure(figures[AGREEMENT])} of the clusters' B-cubed F"
    elif figures[SHOWS].n:
        text = (
            f"{subject_and_verb} worth {format_figure(figures[SHOWS])} on {PROTOCOLS[SHOWS[1]]}, "
            f"{format_figure(effect.overall)} on all held-out titles"
        )
    else:
        text = f"{subject_and_verb} worth {format_figure(effect.overall)} on held-out titles"
    return f"{text}." if effect.pays else f"{text}: {VERDICTS[effect.pays]}."


def write_report(effects: Sequence[Effect], ineffective_blocks: Sequence[str] = ()) -> str:
    """Formats the report as Markdown: a table, sentences, and the blocks without a positive effect.

    ``ineffective_blocks`` are the names of the requested blocks that do not change the preset.
    """
    by_categories = [effect for effect in effects if AGREEMENT not in effect.figures]
    by_clusters = [effect for effect in effects if AGREEMENT in effect.figures]
    lines: list[str] = []
    if by_categories:
        cells = [key for key in CELLS if any(key in effect.figures for effect in by_categories)]
        headers = [f"{PROTOCOLS[protocol]}, {FORM_NAMES[form]}" for form, protocol in cells]
        lines += _effect_table(
            by_categories,
            [OVERALL, OOV, *cells],
            ["all held-out titles", "titles with an unseen word", *headers],
        )
    if by_clusters:
        lines += ["", *_effect_table(by_clusters, [AGREEMENT], ["clusters' B-cubed F"])]
    lines += ["", *(f"- {describe_effect(effect)}" for effect in effects), ""]
    if not_positive := [effect for effect in effects if effect.pays is not True]:
        changes = ", ".join(
            f"{effect.block.name} (`{' '.join(effect.block.changes)}`)" for effect in not_positive
        )
        lines += [f"Without a positive effect: {changes}.", ""]
    if ineffective_blocks:
        lines += [f"Left out, because they do not change the preset: {', '.join(ineffective_blocks)}.", ""]
    return "\n".join([*lines, NOTE, ""])


def _effect_table(
    effects: Sequence[Effect], cells: Sequence[tuple[str, str]], headers: Sequence[str]
) -> list[str]:
    """Returns the lines of a Markdown table with a row per effect and a column per key in ``cells``."""
    names = ["block", "removed by", *headers, ""]
    lines = [f"| {' | '.join(names)} |", f"| --- | --- |{' ---: |' * len(headers)} --- |"]
    for effect in effects:
        figures = [format_figure(effect.figures[key]) if key in effect.figures else "–" for key in cells]
        change = f"`{' '.join(effect.block.changes)}`"
        lines.append(f"| {' | '.join([effect.block.name, change, *figures, VERDICTS[effect.pays]])} |")
    return lines
