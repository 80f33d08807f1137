"""The command ``guidespace ablate``; imports stand inside, as in commands.py."""

from typing import Annotated

from typer import Option

from flows.commands import HOME, NONE, Feeds, Home, Preset, Set, app

BLOCKS = "blocks by name or pattern, or a change such as train.optimizer=adam [default: all]"
Blocks = Annotated[list[str], Option("--blocks", metavar="BLOCK ...", help=BLOCKS)]
Seeds = Annotated[int, Option(metavar="N", help="trainings of each block on each fold", min=1, max=100)]
Folds = Annotated[int, Option(metavar="N", help="splits into training and held-out titles", min=1, max=5)]
Workers = Annotated[int, Option(metavar="N", help="processes that train; -1: one a core", min=-1, max=256)]


@app.command()
def ablate(
    feeds: Feeds,
    home: Home = HOME,
    preset: Preset = "laptop",
    changes: Set = NONE,
    blocks: Blocks = NONE,
    seeds: Seeds = 3,
    folds: Folds = 5,
    workers: Workers = -1,
) -> int:
    """What each building block of the settings is worth. On the same folds and seeds."""
    print(f"GuideSpace: ablation of the preset {preset} in {home}", flush=True)
    from flows.console import run
    from flows.plan import plan_ablation
    from flows.server import start_prefect
    from flows.settings import choose
    from tasks.ablate.settings import AblationSettings
    from tasks.ingest.check import check_feeds
    from tasks.ingest.settings import IngestSettings

    check_feeds(feeds, IngestSettings())
    settings = choose(preset, changes, feeds)
    ablation = AblationSettings(blocks=tuple(blocks), seeds=seeds, folds=folds, workers=workers)
    plan_ablation(settings, ablation)  # refuses an unknown block
    return run("ablate", feeds, home, (settings, ablation), start_prefect(home))
