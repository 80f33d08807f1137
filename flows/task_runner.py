"""Creates Prefect's task runners: threads, processes, or a Dask or Ray cluster."""

from typing import Any

from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from tasks.pool_settings import count_workers


def task_runner(pool: str, workers: int, address: str) -> TaskRunner[Any]:
    """Creates a Prefect task runner with threads, processes, or a Dask or Ray cluster.

    Args:
        pool: ``threads``, ``processes``, ``dask`` or ``ray``.
        workers: Number of concurrent tasks; -1: one per core. Ignored if there is an address.
        address: Address of a Dask scheduler or Ray cluster, whose workers must mount the home; '': start one
            on this machine.
    """
    count = count_workers(workers)
    if pool == "dask":
        from prefect_dask import DaskTaskRunner  # pyright: ignore[reportMissingImports]  (extra dask)

        if address:
            return DaskTaskRunner(address=address)
        cluster_options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
        return DaskTaskRunner(cluster_kwargs=cluster_options)
    if pool == "ray":
        from prefect_ray import RayTaskRunner  # pyright: ignore[reportMissingImports]  (extra ray)

        return RayTaskRunner(address=address) if address else RayTaskRunner(init_kwargs={"num_cpus": count})
    return (ProcessPoolTaskRunner if pool == "processes" else ThreadPoolTaskRunner)(max_workers=count)
