"""The simulator, compiled: the functions of the Rust crate `lab`, JSON text in and out."""

class InputError(ValueError):
    """What was asked for is impossible; the message says what is wrong and what is accepted."""

class InternalError(RuntimeError):
    """A bug in the simulator; the message says where."""

class Control:
    """Watches and stops a simulation from another thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Ask the simulation to stop and to return what it has."""

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""

    @property
    def done(self) -> int:
        """How much of the work is done, in the unit of `total`."""

    @property
    def total(self) -> int:
        """How much work there is; 0 while that is not known."""

def trace(request: str, control: Control) -> tuple[str, bytes]:
    """Run one experiment and record a part of its timeline: the answer, a trace for Perfetto."""

def version() -> str:
    """Return the version of the simulator."""

def list(kind: str) -> str:
    """Return the designs, workloads, profiles or machines, as `{"rows": [...]}`."""

def explain(name: str, settings: list[tuple[str, str]], against: str | None = None) -> str:
    """Return everything known of a design, a workload, a machine or ordering hardware."""

def battery(
    designs: list[str], machine: str, cores: int | None, settings: list[tuple[str, str]]
) -> str:
    """Return the batteries that designs need; of every design, if none is named."""

def run(spec: str, control: Control) -> str:
    """Run one experiment."""

def crash(spec: str, control: Control) -> str:
    """Cut the power during one experiment, at many points."""

def litmus(request: str, control: Control) -> str:
    """Run litmus tests on ordering hardware."""

def plain(spec: str) -> str:
    """Run the workload of one experiment on plain memory, without the simulator."""

def fail(message: str) -> None:
    """Panic with a message, so that the tests see what a user would see."""
