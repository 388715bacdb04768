"""GPU readings through the true binding, over a stand-in for the driver's library."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import morocco
from morocco.errors import GpuError
from morocco.hardware import gpu
from morocco.hardware.gpu import GpuReading
from morocco.hardware.info import GpuInfo, GpuProcess
from morocco.hardware.nvml import ProcessMemory
from nvml_standin import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    VERSION_MISMATCH,
    Gpu,
    Process,
    build,
    environment,
    write_state,
)

ROOT = Path(morocco.__file__).parents[1]
MIB = 2**20
GIB = 2**30
TASK = 7
STRANGER = 8
NOBODY = 2**22 + 7
"""More than any pid."""
NOWHERE = GpuReading(use=None, ram=None)
LISTS = "nvmlDeviceGetComputeRunningProcesses*"


class Machine:
    """A computer whose GPUs a test plugs in and out, and a morocco process on it."""

    def __init__(self, library: Path, state: Path) -> None:
        self.state = state
        self.plug()
        self.process = subprocess.Popen(
            [sys.executable, ROOT / "tests" / "helpers" / "nvml" / "child.py"],
            env={**environment(library, state), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def plug(self, *gpus: Gpu, **facts: Any) -> None:
        write_state(self.state, gpus, **facts)

    def open(self, choice: str = "auto", foreign_pids: bool | None = False) -> Session:
        self.ask("open", choice, foreign_pids=foreign_pids)
        return Session(self)

    def ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        pickle.dump((name, arguments, options), self.process.stdin)
        self.process.stdin.flush()
        value, error = pickle.load(self.process.stdout)
        if error:
            raise error
        return value

    def close(self) -> None:
        self.process.communicate()


class Session:
    """The Gpus of that process, as if it were here."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def __getattr__(self, name: str) -> Any:
        if name in ("infos", "source", "lost", "strangers"):
            return self.machine.ask(name)
        return partial(self.machine.ask, name)


@pytest.fixture(scope="module")
def machine_with(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Machine]]:
    """Give the machine with a driver: "new", "old", "wide" or none that works ("broken")."""
    folder = tmp_path_factory.mktemp("nvml")
    machines: dict[str, Machine] = {}

    def machine_with(driver: Any) -> Machine:
        if driver not in machines:
            library = broken(folder) if driver == "broken" else build(folder, driver)
            machines[driver] = Machine(library, folder / f"{driver}.state")
        return machines[driver]

    yield machine_with
    for machine in machines.values():
        machine.close()


@pytest.fixture
def machine(machine_with: Callable[..., Machine]) -> Machine:
    return machine_with("new")


def broken(folder: Path) -> Path:
    library = folder / "broken" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    library.touch()
    return library.parent


def busy(uuid: str = "GPU-0", *processes: Process, used: int | None = 0, percent: int = 50) -> Gpu:
    return Gpu(uuid, used=used, percent=percent, processes=processes)


# Which GPUs


def test_auto_takes_every_gpu_there_is(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a"), Gpu("GPU-b"))
    assert [info.uuid for info in machine.open("auto").infos] == ["GPU-a", "GPU-b"]


def test_auto_is_no_gpu_where_the_library_cannot_be_loaded(
    machine_with: Callable[..., Machine],
) -> None:
    gpus = machine_with("broken").open("auto")
    assert (gpus.infos, gpus.lost, gpus.read([TASK])) == ((), (), NOWHERE)


def test_auto_is_no_gpu_where_the_driver_is_not_loaded(machine: Machine) -> None:
    machine.plug(errors={"nvmlInitWithFlags": DRIVER_NOT_LOADED})
    gpus = machine.open("auto")
    assert (gpus.infos, gpus.lost, gpus.energy()) == ((), (), None)


def test_auto_tells_of_a_library_that_does_not_match_its_driver(machine: Machine) -> None:
    machine.plug(Gpu(), errors={"nvmlInitWithFlags": VERSION_MISMATCH})
    gpus = machine.open("auto")
    assert gpus.infos == ()
    assert gpus.lost == ("NVML: RM has detected an NVML/RM version mismatch.",)


def test_auto_goes_on_without_a_gpu_that_is_broken(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a", lost=True), Gpu("GPU-b"))
    gpus = machine.open("auto")
    assert [info.index for info in gpus.infos] == [1]
    assert gpus.lost == ("GPU 0: GPU is lost",)


def test_all_refuses_to_go_on_without_a_gpu_that_is_broken(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a"), Gpu("GPU-b", lost=True))
    with pytest.raises(GpuError, match="GPU 1: GPU is lost"):
        machine.open("all")


def test_a_list_may_leave_out_a_gpu_that_is_broken(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a"), Gpu("GPU-b", lost=True))
    gpus = machine.open("0")
    assert [info.uuid for info in gpus.infos] == ["GPU-a"]
    assert gpus.lost == ()


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ("all", [0, 1, 2]),
        ("1", [1]),
        ("2,0", [2, 0]),
        (" 0, 01 ", [0, 1]),
        ("GPU-c,1", [2, 1]),
        ("1,1,GPU-b", [1]),
    ],
)
def test_gpus_are_chosen_by_index_and_uuid(
    machine: Machine, choice: str, chosen: list[int]
) -> None:
    machine.plug(Gpu("GPU-a"), Gpu("GPU-b"), Gpu("GPU-c"))
    assert [info.index for info in machine.open(choice).infos] == chosen


@pytest.mark.parametrize("choice", ["3", "0,3", "GPU-z", "MIG-a"])
def test_a_gpu_that_is_not_there_is_refused_with_what_is_there(
    machine: Machine, choice: str
) -> None:
    machine.plug(Gpu("GPU-a"), Gpu("GPU-b"))
    with pytest.raises(GpuError, match=rf"--gpus {choice}: .*GPU 0 \(GPU-a\), GPU 1 \(GPU-b\)"):
        machine.open(choice)


@pytest.mark.parametrize("choice", ["", "0,,1", "-1", "0;1", "gpu0", "auto,0", "none,"])
def test_a_malformed_choice_is_refused(machine: Machine, choice: str) -> None:
    machine.plug(Gpu())
    with pytest.raises(GpuError, match="neither an index nor a UUID"):
        machine.open(choice)


@pytest.mark.parametrize("choice", ["all", "0"])
def test_gpus_asked_for_are_refused_where_there_is_no_driver(machine: Machine, choice: str) -> None:
    machine.plug(errors={"nvmlInitWithFlags": DRIVER_NOT_LOADED})
    with pytest.raises(GpuError, match=rf"--gpus {choice}: .*Driver Not Loaded.*`none`"):
        machine.open(choice)


def test_all_is_refused_where_nvml_sees_no_gpu(machine: Machine) -> None:
    machine.plug()
    with pytest.raises(GpuError, match="NVML sees no GPU"):
        machine.open("all")


def test_all_is_refused_where_the_gpus_cannot_be_counted(machine: Machine) -> None:
    machine.plug(Gpu(), errors={"nvmlDeviceGetCount_v2": UNKNOWN})
    with pytest.raises(GpuError, match="NVML: Unknown Error"):
        machine.open("all")


def test_none_never_loads_nvml() -> None:
    program = (
        "import sys; from morocco.hardware.gpu import Gpus\n"
        "with Gpus.open('none') as gpus: gpus.mark_baseline(); print(gpus.read([1]), gpus.infos)\n"
        "print('pynvml' in sys.modules)"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)
    assert printed == "GpuReading(use=None, ram=None) ()\nFalse\n"


# What they are


def test_a_gpu_is_described_for_the_record(machine: Machine) -> None:
    gpu = Gpu("GPU-a", name="Tesla V100-SXM2-32GB", total=32 * GIB, power_limit=300_500, mig=None)
    machine.plug(gpu, driver="535.54.03", cuda=12020)
    assert machine.open().infos == (
        GpuInfo(
            index=0,
            uuid="GPU-a",
            name="Tesla V100-SXM2-32GB",
            memory=32 * GIB,
            driver="535.54.03",
            cuda="12.2",
            mig=None,
            power_limit=300.5,
        ),
    )


def test_what_a_gpu_does_not_tell_is_none(machine: Machine) -> None:
    untold = {"nvmlSystemGetCudaDriverVersion": NOT_SUPPORTED}
    machine.plug(Gpu(used=None, power_limit=None, mig=None), errors=untold)
    (info,) = machine.open().infos
    assert (info.memory, info.power_limit, info.mig, info.cuda) == (None, None, None, None)


@pytest.mark.parametrize("mig", [True, False])
def test_a_gpu_tells_whether_it_is_split(machine: Machine, mig: bool) -> None:
    machine.plug(Gpu(mig=mig))
    assert machine.open().infos[0].mig is mig


# Who is on them


def test_everyone_on_the_selected_gpus_is_listed_once(machine: Machine) -> None:
    ours = os.getpid()
    name = Path("/proc/self/comm").read_text().strip()
    machine.plug(
        Gpu("GPU-a", processes=[Process(ours, MIB), Process(ours, MIB, "graphics")]),
        Gpu("GPU-b", processes=[Process(ours, None, "graphics"), Process(2**22 + 1, GIB)]),
        Gpu("GPU-c", processes=[Process(ours, MIB)]),
    )
    assert set(machine.open("0,1").processes()) == {
        GpuProcess(0, ours, name, MIB),
        GpuProcess(1, ours, name, None),
        GpuProcess(1, 2**22 + 1, None, GIB),
    }


def test_more_processes_than_usual_are_all_listed(machine: Machine) -> None:
    machine.plug(Gpu(processes=[Process(pid, MIB) for pid in range(1, 201)]))
    assert len(machine.open().processes()) == 200


def test_a_foreign_pid_is_given_no_name_of_ours(machine: Machine) -> None:
    machine.plug(busy("GPU-a", Process(os.getpid(), MIB)))
    (process,) = machine.open(foreign_pids=True).processes()
    assert process.name is None


def test_memory_in_use_is_told_for_each_selected_gpu(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a", used=1), Gpu("GPU-b", used=None), Gpu("GPU-c", used=3))
    assert machine.open("2,0,1").used() == (3, 1, None)


# One beat


def test_a_task_on_no_gpu_has_no_reading(machine: Machine) -> None:
    machine.plug(busy("GPU-a", Process(STRANGER, GIB), used=GIB))
    gpus = machine.open()
    gpus.mark_baseline()
    machine.plug(busy("GPU-a", Process(STRANGER, 9 * GIB), used=9 * GIB))
    assert gpus.read([TASK]) == NOWHERE
    assert gpus.source is None


@pytest.mark.parametrize("driver", ["new", "old", "wide"])
def test_the_memory_of_a_task_is_summed_over_its_processes_and_gpus(
    machine_with: Callable[..., Machine], driver: str
) -> None:
    machine = machine_with(driver)
    machine.plug(
        busy("GPU-a", Process(STRANGER, 9 * GIB), Process(TASK, GIB), Process(70, MIB), percent=25),
        busy("GPU-b", Process(TASK, 2 * GIB), percent=75),
        busy("GPU-c", Process(STRANGER, GIB), percent=100),
    )
    gpus = machine.open()
    assert gpus.read([TASK, 70]) == GpuReading(use=0.5, ram=3 * GIB + MIB)
    assert gpus.source == "process"


def test_processes_come_and_go_under_a_running_session(machine: Machine) -> None:
    machine.plug(Gpu())
    gpus = machine.open()
    beats = [gpus.read([TASK])]
    for processes in ([Process(TASK, GIB)], [Process(TASK, 2 * GIB)], []):
        machine.plug(busy("GPU-0", *processes))
        beats.append(gpus.read([TASK]))
    assert [beat.ram for beat in beats] == [None, GIB, 2 * GIB, None]


def test_a_version_of_the_list_that_only_fails_when_called_is_passed_over(
    machine: Machine,
) -> None:
    plain = LISTS.rstrip("*")
    missing = {plain: FUNCTION_NOT_FOUND, f"{plain}_v2": FUNCTION_NOT_FOUND}
    machine.plug(busy("GPU-a", Process(TASK, GIB)), errors=missing)
    assert machine.open().read([TASK]).ram == GIB


def test_the_version_of_the_list_is_found_once(machine: Machine) -> None:
    gpu = busy("GPU-a", Process(TASK, GIB))
    second = f"{LISTS.rstrip('*')}_v2"
    machine.plug(gpu, errors={second: FUNCTION_NOT_FOUND})
    gpus = machine.open()
    gpus.read([TASK])
    machine.plug(gpu, errors={second: UNKNOWN})
    assert gpus.read([TASK]).ram == GIB


@pytest.mark.parametrize("gpu", [Gpu(percent=None), Gpu(percent=77, mig=True)])
def test_a_gpu_without_utilisation_has_no_use_but_memory(machine: Machine, gpu: Gpu) -> None:
    machine.plug(replace(gpu, processes=[Process(TASK, GIB)]))
    assert machine.open().read([TASK]) == GpuReading(use=None, ram=GIB)


# Strangers


@pytest.fixture
def stranger() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def beat(gpus: Session, *members: int) -> Any:
    """Read the GPUs once for a target of these processes and return the strangers so far."""
    gpus.read(members)
    return gpus.strangers


def test_a_stranger_counts_once_it_is_listed_twice_in_a_row(
    machine: Machine, stranger: int
) -> None:
    machine.plug(busy("GPU-0", Process(NOBODY, GIB), Process(stranger, MIB)))
    gpus = machine.open()
    assert beat(gpus, NOBODY) == ()
    found = (GpuProcess(0, stranger, "sleep", MIB),)
    assert [beat(gpus, NOBODY), beat(gpus, NOBODY)] == [found, found]


def test_a_child_listed_before_it_was_seen_is_no_stranger(machine: Machine, stranger: int) -> None:
    machine.plug(busy("GPU-0", Process(NOBODY, GIB), Process(stranger, MIB)))
    gpus = machine.open()
    assert [beat(gpus, NOBODY), beat(gpus, NOBODY, stranger), beat(gpus, NOBODY)] == [(), (), ()]


def test_one_that_turns_out_to_belong_to_the_target_was_no_stranger(
    machine: Machine, stranger: int
) -> None:
    machine.plug(busy("GPU-0", Process(NOBODY, GIB), Process(stranger, MIB)))
    gpus = machine.open()
    beat(gpus, NOBODY)
    assert len(beat(gpus, NOBODY)) == 1
    assert beat(gpus, NOBODY, stranger) == ()


def test_a_child_that_is_missing_from_the_list_of_children_is_no_stranger(
    machine: Machine, stranger: int
) -> None:
    machine.plug(busy("GPU-0", Process(stranger, GIB)))
    gpus = machine.open()
    ours = os.getpid()
    assert [beat(gpus, ours), beat(gpus, ours), beat(gpus, NOBODY)] == [(), (), ()]


def test_a_process_that_outlives_itself_on_the_list_is_no_stranger(machine: Machine) -> None:
    machine.plug(busy("GPU-0", Process(NOBODY, GIB), Process(2**22 + 1, MIB)))
    gpus = machine.open()
    assert [beat(gpus, NOBODY) for _ in range(3)] == [(), (), ()]


def test_the_server_that_shares_a_gpu_is_no_stranger(machine: Machine, tmp_path: Path) -> None:
    server = tmp_path / "nvidia-cuda-mps-server"
    shutil.copy("/bin/sleep", server)
    with subprocess.Popen([server, "600"]) as process:
        machine.plug(busy("GPU-0", Process(NOBODY, GIB), Process(process.pid, MIB)))
        gpus = machine.open()
        assert [beat(gpus, NOBODY) for _ in range(3)] == [(), (), ()]
        process.kill()


@pytest.mark.parametrize("reason", ["foreign", NOT_SUPPORTED])
def test_strangers_are_unknown_where_pids_cannot_be_compared(
    machine: Machine, stranger: int, reason: int | str
) -> None:
    errors = {} if isinstance(reason, str) else {LISTS: reason}
    machine.plug(replace(busy("GPU-0", Process(stranger, MIB)), errors=errors))
    gpus = machine.open(foreign_pids=reason == "foreign")
    assert [beat(gpus, NOBODY) for _ in range(3)] == [None, None, None]


def test_without_a_gpu_there_is_no_stranger(machine: Machine) -> None:
    assert beat(machine.open("none"), NOBODY) == ()


# Where the driver does not tell the memory of a process


def test_the_growth_of_the_gpu_stands_in_for_memory_that_is_not_told(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a", used=3 * GIB), Gpu("GPU-b", used=GIB))
    gpus = machine.open()
    gpus.mark_baseline()
    machine.plug(
        busy("GPU-a", Process(TASK, None), Process(70, MIB), used=5 * GIB),
        busy("GPU-b", Process(TASK, GIB), used=7 * GIB),
    )
    assert gpus.read([TASK, 70]) == GpuReading(use=0.5, ram=2 * GIB + GIB)
    assert gpus.source == "device"


def test_once_a_gpu_had_to_stand_in_the_run_says_so_to_its_end(machine: Machine) -> None:
    machine.plug(busy("GPU-a", Process(TASK, GIB)))
    gpus = machine.open()
    gpus.mark_baseline()
    sources = []
    for memory in (GIB, None, GIB):
        machine.plug(busy("GPU-a", Process(TASK, memory), used=GIB))
        gpus.read([TASK])
        sources.append(gpus.source)
    assert sources == ["process", "device", "device"]


def test_growth_is_never_negative(machine: Machine) -> None:
    machine.plug(Gpu(used=3 * GIB))
    gpus = machine.open()
    gpus.mark_baseline()
    machine.plug(busy("GPU-0", Process(TASK, None), used=GIB))
    assert gpus.read([TASK]) == GpuReading(use=0.5, ram=0)


@pytest.mark.parametrize("used", [None, 3 * GIB])
def test_memory_is_none_where_nothing_can_stand_in(machine: Machine, used: int | None) -> None:
    machine.plug(busy("GPU-0", Process(TASK, None), used=used))
    gpus = machine.open()  # and no baseline
    assert gpus.read([TASK]) == GpuReading(use=0.5, ram=None)


def test_a_sum_with_an_unknown_part_is_unknown(machine: Machine) -> None:
    machine.plug(
        busy("GPU-a", Process(TASK, GIB)),
        Gpu("GPU-b", used=None, percent=None, processes=[Process(TASK, None)]),
    )
    assert machine.open().read([TASK]) == NOWHERE


# Where pids cannot be compared


@pytest.mark.parametrize("reason", ["foreign", NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND])
def test_growth_tells_that_an_incomparable_task_is_on_a_gpu(
    machine: Machine, reason: int | str
) -> None:
    errors = {} if isinstance(reason, str) else {LISTS: reason}
    gpu = replace(busy("GPU-a", Process(STRANGER, 3 * GIB)), errors=errors)
    machine.plug(replace(gpu, used=GIB), Gpu("GPU-b", used=GIB))
    gpus = machine.open(foreign_pids=reason == "foreign")
    gpus.mark_baseline()
    idle = gpus.read([TASK])
    machine.plug(replace(gpu, used=GIB + MIB), Gpu("GPU-b", used=GIB))
    noise = gpus.read([TASK])
    machine.plug(replace(gpu, used=4 * GIB), Gpu("GPU-b", used=GIB))
    assert (idle, noise) == (NOWHERE, NOWHERE)
    assert gpus.read([TASK]) == GpuReading(use=0.5, ram=3 * GIB)
    assert gpus.source == "device"
    assert gpus.lost == ()


def test_a_listed_task_is_believed_in_a_pid_namespace_too(machine: Machine) -> None:
    machine.plug(Gpu(used=0))
    gpus = machine.open(foreign_pids=True)
    gpus.mark_baseline()
    machine.plug(busy("GPU-0", Process(TASK, GIB), used=4 * GIB))
    assert gpus.read([TASK]).ram == GIB
    assert gpus.source == "process"


def test_without_a_baseline_an_incomparable_task_is_nowhere(machine: Machine) -> None:
    machine.plug(Gpu(used=4 * GIB))
    assert machine.open(foreign_pids=True).read([TASK]) == NOWHERE


def test_a_pid_namespace_is_noticed(machine: Machine) -> None:
    machine.plug(Gpu())
    gpus = machine.open(foreign_pids=None)
    gpus.mark_baseline()
    machine.plug(Gpu(used=GIB))
    on_host = Path("/proc/self/ns/pid").readlink() == Path("pid:[4026531836]")
    assert gpus.read([TASK]).ram == (None if on_host else GIB)


# GPUs that fail


def test_the_others_go_on_when_a_gpu_falls_off_the_bus(machine: Machine) -> None:
    first, second = (busy(uuid, Process(TASK, GIB)) for uuid in ("GPU-a", "GPU-b"))
    machine.plug(first, second)
    gpus = machine.open()
    beats = [gpus.read([TASK])]
    machine.plug(first, replace(second, lost=True))
    beats += [gpus.read([TASK]), gpus.read([TASK])]
    assert [beat.ram for beat in beats] == [2 * GIB, GIB, GIB]
    assert gpus.lost == ("GPU 1 (GPU-b): GPU is lost",)


@pytest.mark.parametrize("function", [LISTS, "nvmlDeviceGetUtilizationRates"])
def test_a_gpu_with_an_unknown_error_is_asked_no_more(machine: Machine, function: str) -> None:
    gpu = busy("GPU-a", Process(TASK, GIB))
    machine.plug(gpu)
    gpus = machine.open()
    machine.plug(replace(gpu, errors={function: UNKNOWN}))
    failing = gpus.read([TASK])
    machine.plug(gpu)
    assert (failing, gpus.read([TASK])) == (NOWHERE, NOWHERE)
    assert gpus.lost == ("GPU 0 (GPU-a): Unknown Error",)


def test_a_lost_gpu_is_named_once_whatever_is_asked(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a", energy=5), Gpu("GPU-b", used=9))
    gpus = machine.open()
    machine.plug(Gpu("GPU-a", lost=True), Gpu("GPU-b", used=9))
    gpus.mark_baseline()
    assert gpus.used() == (None, 9)
    assert gpus.processes() == ()
    assert gpus.energy() is None
    assert gpus.lost == ("GPU 0 (GPU-a): GPU is lost",)


# Clocks


def work(gpus: Session, *moments: float) -> Any:
    """Read the GPUs at these moments and return what their clocks come to."""
    for moment in moments:
        gpus.read([TASK], moment)
    return gpus.clocks()


def test_clocks_of_a_gpu_at_work_are_read_once_a_second_but_not_at_the_start(
    machine: Machine,
) -> None:
    mine = busy("GPU-0", Process(TASK, GIB))
    machine.plug(replace(mine, sm=300, slowed_by_heat=10**9))
    gpus = machine.open()
    gpus.mark_baseline()
    assert work(gpus, 100, 100.3, 100.6) == ()
    machine.plug(replace(mine, sm=1400, draw=300_500, celsius=71, slowed_by_heat=3 * 10**9))
    work(gpus, 101)
    machine.plug(replace(mine, sm=1200, draw=200_500, celsius=70, slowed_by_heat=4 * 10**9))
    (clocks,) = work(gpus, 101.3, 102, 102.3, 103)
    assert (clocks.gpu, clocks.busy, clocks.sm_clock_max) == (0, 3.0, 1410)
    assert (clocks.sm_clock, clocks.sm_clock_lowest) == (1200, 1200)
    assert (clocks.temperature, clocks.power_highest) == (71, 300.5)
    assert clocks.power == pytest.approx((300.5 + 2 * 200.5) / 3, abs=0.001)
    assert (clocks.heat_time, clocks.power_time, clocks.slowdown) == (3.0, 0.0, 0.0)


def test_only_the_gpus_the_task_is_at_work_on_have_clocks(machine: Machine) -> None:
    machine.plug(
        busy("GPU-a", Process(STRANGER, GIB)),
        busy("GPU-b", Process(TASK, GIB)),
        busy("GPU-c", Process(TASK, GIB), percent=0),
        replace(busy("GPU-d", Process(TASK, GIB)), reasons=0x1),
    )
    assert [clocks.gpu for clocks in work(machine.open(), 0, 1, 2)] == [1]


@pytest.mark.parametrize(("moment", "count"), [(None, 0), (2, 1)])
def test_without_a_moment_no_clocks_are_read(
    machine: Machine, moment: float | None, count: int
) -> None:
    machine.plug(busy("GPU-0", Process(TASK, GIB)))
    gpus = machine.open()
    gpus.read([TASK], 1)
    gpus.read([TASK], moment)
    assert len(gpus.clocks()) == count


def test_an_old_driver_knows_the_reasons_by_another_name(
    machine_with: Callable[..., Machine],
) -> None:
    machine = machine_with("old")
    machine.plug(replace(busy("GPU-0", Process(TASK, GIB)), reasons=0x8 | 0x40))
    (clocks,) = work(machine.open(), 0, 1, 2)
    assert clocks.is_slowed()


@pytest.mark.parametrize("code", [FUNCTION_NOT_FOUND, NOT_SUPPORTED, NO_PERMISSION, UNKNOWN])
def test_clocks_that_a_driver_does_not_tell_are_none_and_harm_nothing(
    machine: Machine, code: int
) -> None:
    silent = ("*ClockInfo", "*Clocks*Reasons", "*Temperature", "*PowerUsage", "*ViolationStatus")
    gpu = busy("GPU-0", Process(TASK, GIB))
    machine.plug(replace(gpu, errors=dict.fromkeys(silent, code)))
    gpus = machine.open()
    gpus.mark_baseline()
    (clocks,) = work(gpus, 0, 1)
    told = set(vars(clocks).items()) - {("gpu", 0), ("busy", 1.0)}
    assert {value for _, value in told} == {None}
    assert gpus.read([TASK], 2).ram == GIB
    assert gpus.lost == ()


def test_a_split_gpu_has_the_clocks_that_its_driver_tells(machine: Machine) -> None:
    machine.plug(replace(busy("GPU-0", Process(TASK, GIB)), mig=True, sm=None))
    (clocks,) = work(machine.open(), 0, 1)
    assert (clocks.sm_clock, clocks.memory_clock) == (None, None)
    assert clocks.temperature == 60


def test_the_clocks_of_a_lost_gpu_end_where_it_was_lost(machine: Machine) -> None:
    gpu = busy("GPU-0", Process(TASK, GIB))
    machine.plug(gpu)
    gpus = machine.open()
    gpus.mark_baseline()
    work(gpus, 0, 1)
    machine.plug(replace(gpu, lost=True))
    (clocks,) = work(gpus, 2, 3)
    assert (clocks.busy, clocks.sm_clock, clocks.heat_time) == (1, 1410, None)
    assert gpus.lost == ("GPU 0 (GPU-0): GPU is lost",)


def test_a_driver_that_counts_anew_has_counted_nothing(machine: Machine) -> None:
    gpu = busy("GPU-0", Process(TASK, GIB))
    machine.plug(replace(gpu, slowed_by_heat=10**9))
    gpus = machine.open()
    gpus.mark_baseline()
    machine.plug(gpu)
    (clocks,) = work(gpus, 0, 1)
    assert (clocks.heat_time, clocks.power_time) == (None, 0.0)


# Energy, and the end


def test_energy_is_summed_over_the_selected_gpus(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a", energy=1_500), Gpu("GPU-b", energy=250), Gpu("GPU-c", energy=9))
    assert machine.open("0,1").energy() == pytest.approx(1.75)


def test_energy_is_unknown_where_one_gpu_does_not_count_it(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a", energy=1_500), Gpu("GPU-b", energy=None))
    assert machine.open().energy() is None


def test_an_old_driver_counts_no_energy_and_knows_no_mig(
    machine_with: Callable[..., Machine],
) -> None:
    machine = machine_with("old")
    machine.plug(Gpu(energy=1_500, mig=True))
    gpus = machine.open()
    assert (gpus.energy(), gpus.infos[0].mig) == (None, None)


def test_closing_twice_or_after_the_driver_went_away_is_quiet(machine: Machine) -> None:
    machine.plug(Gpu("GPU-a"))
    gpus = machine.open()
    machine.plug(Gpu("GPU-a"), errors={"nvmlShutdown": GPU_IS_LOST})
    gpus.close()
    gpus.close()
    assert [info.uuid for info in gpus.infos] == ["GPU-a"]


# The stand-in itself


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", "input()", "t0ken"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_process_is_placed_on_a_gpu_by_its_command_line(
    machine: Machine, other: subprocess.Popen[bytes]
) -> None:
    machine.plug(busy("GPU-a", Process("match:t0ken", GIB)))
    gpus = machine.open()
    running = gpus.read([other.pid])
    other.communicate(b"\n")
    assert (running.ram, gpus.read([other.pid]).ram) == (GIB, None)


def test_those_who_started_the_reader_are_not_placed(
    machine: Machine, other: subprocess.Popen[bytes]
) -> None:
    machine.plug(busy("GPU-a", Process("match:python", GIB)))
    gpus = machine.open()
    assert gpus.read([other.pid]).ram == GIB
    assert gpus.read([os.getpid()]) == NOWHERE


def test_a_call_can_be_slow(machine: Machine) -> None:
    machine.plug(Gpu(), delays={LISTS: 20_000})
    gpus = machine.open()
    start = time.monotonic()
    gpus.read([TASK])
    assert time.monotonic() - start >= 0.02


@pytest.mark.parametrize(("ci", "outcome"), [("true", "Failed"), ("", "Skipped")])
def test_without_a_compiler_tests_fail_in_ci_and_are_skipped_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ci: str, outcome: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(BaseException, match="no C compiler") as stopped:
        build(tmp_path)
    assert stopped.typename == outcome


def test_a_process_that_ends_while_it_is_judged_is_no_stranger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:

        def end(_: int) -> list[int]:
            process.kill()
            process.wait()
            return []

        monkeypatch.setattr(gpu, "list_ancestors", end)
        strangers = gpu.Strangers()
        for _ in range(2):
            strangers.look(0, [ProcessMemory(process.pid, None)], [])
    assert process.returncode == -9
    assert strangers.found == ()
