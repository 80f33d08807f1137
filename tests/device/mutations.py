"""Waits and lifetimes of the offloaded table; a test must fail if one of them is removed."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """Part of a line of ``storage/tables``, its replacement, and the test that then fails."""

    file: str
    line: str
    becomes: str
    caught_by: str


EXACT = "resident_table and SGD"
CURRENT = "torch.cuda.current_stream(self.device)"
MUTATIONS = {
    "moves wait for no step": Mutation(
        "offloaded.py", "self._steps.wait(plan.depends_on_step)", "pass", EXACT
    ),
    "the stream waits for no step": Mutation(
        "prefetch.py", "torch.cuda.current_stream(self._device).wait_event(event)", "pass", EXACT
    ),
    "leaving rows wait for no step": Mutation(
        "planner.py", "int(self._last_batches[leave_slots].max(initial=NO_STEP))", "NO_STEP", EXACT
    ),
    "a step waits for no rows": Mutation("offloaded.py", "stream.wait_event(batch.event)", "pass", EXACT),
    "rows of a plan are not recorded": Mutation(
        "offloaded.py", "batch.ids.record_stream(stream)", "pass", EXACT
    ),
    "rows that no step uses leave before they have entered": Mutation(
        "offloaded.py", "self._wait_for_rows(ready_batch)", "pass", "no_step_follows"
    ),
    "rows that enter are not recorded": Mutation(
        "offloaded.py", "entering_on_device.record_stream(self._read_stream)", "pass", "restored"
    ),
    "rows enter before others have left": Mutation(
        "offloaded.py", "self._read_stream.wait_event(self._write_stream.record_event())", "pass", EXACT
    ),
    "moves do not wait for what preceded the loop": Mutation(
        "offloaded.py", f"self._write_stream.wait_stream({CURRENT})", "pass", "outside_a_loop"
    ),
    "a checkpoint does not wait for moves": Mutation(
        "offloaded.py", "stream.wait_stream(self._read_stream)", "pass", "between_two_batches"
    ),
    "a checkpoint does not wait for its rows": Mutation(
        "offloaded.py", "stream.synchronize()", "pass", "between_two_batches"
    ),
    "the loop's end does not wait for moves": Mutation(
        "offloaded.py", f"{CURRENT}.wait_stream(self._read_stream)", "pass", "outside_a_loop"
    ),
    "restore does not wait for moves": Mutation(
        "offloaded.py", "torch.cuda.synchronize(self.device)", "pass", "restored"
    ),
    "a buffer is used again at once": Mutation("transfer.py", "event.synchronize()", "pass", EXACT),
    "the CPU scatters at once": Mutation("transfer.py", f"{CURRENT}.synchronize()", "pass", EXACT),
    "memory is unpinned under kernels": Mutation(
        "host.py", "torch.cuda.synchronize(device)", "pass", "hundred_tables"
    ),
}
