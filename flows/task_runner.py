"""Where the submitted tasks of a flow run: in threads, processes, or by Dask or Ray on several machines."""

from typing import Any

from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from tasks.pool import AUTOMATIC, cores


def task_runner(pool: str, workers: int = AUTOMATIC, address: str = "") -> TaskRunner[Any]:
    """A task runner of Prefect (``threads``, ``processes``, ``dask`` or ``ray``).

    ``workers`` run at a time, by default one a core; a cluster at an address has its own number, its workers
    must mount the home.
    """
    count = cores() if workers == AUTOMATIC else max(1, workers)
    if pool == "dask":
        from prefect_dask import DaskTaskRunner  # pyright: ignore[reportMissingImports]  (extra dask)

        own = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
        return DaskTaskRunner(address=address) if address else DaskTaskRunner(cluster_kwargs=own)
    if pool == "ray":
        from prefect_ray import RayTaskRunner  # pyright: ignore[reportMissingImports]  (extra ray)

        return RayTaskRunner(address=address) if address else RayTaskRunner(init_kwargs={"num_cpus": count})
    return (ProcessPoolTaskRunner if pool == "processes" else ThreadPoolTaskRunner)(max_workers=count)
