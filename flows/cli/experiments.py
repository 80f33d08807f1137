"""Defines the commands that compare settings: ``tune`` and ``ablate``."""

from typing import Annotated, get_args

from typer import BadParameter, Option

from flows.cli.options import NO_VALUES, Feeds, Home, Preset, Set
from flows.defaults import DEFAULT_HOME
from tasks.ingest.sources.feeds import count_feeds

BLOCKS_HELP = "building blocks: names, patterns or changes such as train.optimizer=adam [default: all]"
OPTIMIZERS_HELP = "optimizers to compare: names of train.optimizer, or yellowfin [default: all]"
RATES_HELP = "factors by which the default learning rate of each optimizer is multiplied [default: 0.3 1 3]"
SEARCHES_HELP = "esgd or random: search over optimizers and rates instead of trying all combinations"
TUNING_HELP = "change settings, such as train.epochs=5, tuning.budget=20 or tuning.pool=processes"

Blocks = Annotated[list[str], Option("--blocks", metavar="BLOCK ...", help=BLOCKS_HELP)]
Seeds = Annotated[int, Option(metavar="N", help="trainings per building block and fold", min=1, max=100)]
Folds = Annotated[int, Option(metavar="N", help="splits into training and held-out titles", min=1, max=5)]
Workers = Annotated[int, Option(metavar="N", help="training processes; -1: one per core", min=-1, max=256)]
Optimizers = Annotated[list[str], Option(metavar="NAME ...", help=OPTIMIZERS_HELP)]
Sizes = Annotated[list[int], Option(metavar="N ...", help="embedding dimensions [default: 32 128 256]")]
Rates = Annotated[list[float], Option(metavar="FACTOR ...", help=RATES_HELP)]
Searches = Annotated[list[str], Option("--search", metavar="NAME ...", help=SEARCHES_HELP)]
TuningSet = Annotated[list[str], Option("--set", metavar="NAME=VALUE ...", help=TUNING_HELP)]


def tune(
    feeds: Feeds,
    home: Home = DEFAULT_HOME,
    preset: Preset = "laptop",
    changes: TuningSet = NO_VALUES,
    optimizers: Optimizers = NO_VALUES,
    sizes: Sizes = NO_VALUES,
    rates: Rates = NO_VALUES,
    search: Searches = NO_VALUES,
) -> int:
    """Compare optimizers at several rates, or search over both."""
    print(
        f"GuideSpace: comparison of optimizers on {count_feeds(feeds)} in {home}, preset {preset}", flush=True
    )
    from flows.cli.progress import run_and_report
    from flows.server import start_prefect
    from flows.settings import choose_settings
    from tasks.ingest.check import check_feeds
    from tasks.overrides import override
    from tasks.train.tuning.entries import list_candidates
    from tasks.train.tuning.settings import Search, TuningSettings

    searches = {search_type.name: search_type for search_type in get_args(Search)}
    if unknown_names := ", ".join(sorted(set(search) - searches.keys())):
        raise BadParameter(f"unknown search {unknown_names}; expected one of {', '.join(searches)}")
    options = {
        "optimizers": tuple(optimizers),
        "sizes": tuple(sizes),
        "rates": tuple(rates),
        "searches": tuple(searches[name]() for name in search),
    }
    try:
        tuning = TuningSettings(**{name: value for name, value in options.items() if value})
    except ValueError as error:
        raise BadParameter(str(error)) from error
    tuning_changes = [change for change in changes if change.startswith("tuning.")]
    tuning = override(tuning, [change.removeprefix("tuning.") for change in tuning_changes])
    settings = choose_settings(preset, [change for change in changes if change not in tuning_changes], feeds)
    check_feeds(feeds, settings.ingest)
    list_candidates(settings.train, tuning.optimizers)  # raises for an unknown optimizer
    return run_and_report("tune", feeds, home, {"settings": settings, "tuning": tuning}, start_prefect(home))


def ablate(
    feeds: Feeds,
    home: Home = DEFAULT_HOME,
    preset: Preset = "laptop",
    changes: Set = NO_VALUES,
    blocks: Blocks = NO_VALUES,
    seeds: Seeds = 3,
    folds: Folds = 5,
    workers: Workers = -1,
) -> int:
    """Measure the contribution of each building block to the scores."""
    print(f"GuideSpace: ablation of the preset {preset} in {home}", flush=True)
    from flows.cli.progress import run_and_report
    from flows.server import start_prefect
    from flows.settings import choose_settings
    from tasks.ablate.plan import plan_ablation
    from tasks.ablate.settings import AblationSettings
    from tasks.ingest.check import check_feeds

    settings = choose_settings(preset, changes, feeds)
    check_feeds(feeds, settings.ingest)
    ablation = AblationSettings(blocks=tuple(blocks), seeds=seeds, folds=folds, workers=workers)
    plan_ablation(settings, ablation)  # raises for an unknown block
    return run_and_report(
        "ablate", feeds, home, {"settings": settings, "ablation": ablation}, start_prefect(home)
    )
