"""Both sides of drawn.py: bench.drawn as a process, PyTorch's ways as bodies, and turns of rounds."""
import math
import select
import statistics
import subprocess
import time

import torch

import drawn_torch

PATIENCE = 300  # seconds that an answer of the program may take


class Failed(Exception):
    """The program refuses a case, or computes something else."""


class Program:
    """Two processes of bench.drawn: nobody reads the results of ops, and theirs leaves out no work for that. On a GPU
    `measured` is another one, whose convolutions and products are chosen by measuring, as cuDNN's search does for
    PyTorch."""

    def __init__(self, path, environment, device, threads, measures=False):
        self.measured = None
        if device.startswith("cuda") and not measures:
            chosen = dict(environment, PARACORD_CHOICE="measured")
            self.measured = Program(path, chosen, device, threads, measures=True)
        self.command, self.processes, self.kind = [path, device, str(threads)], {}, None
        words = [environment[name] for name in ("PARACORD_PLAN",) if name in environment]
        self.environments = {"net": environment, "op": dict(environment, PARACORD_PLAN=",".join(words + ["-dead", "-duplicates"]))}

    def ask(self, line):
        if self.kind not in self.processes:
            self.processes[self.kind] = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                         env=self.environments[self.kind])
        process = self.processes[self.kind]
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            here = select.select([process.stdout], [], [], PATIENCE)[0]
            answer = process.stdout.readline().decode().strip() if here else ""
        except BrokenPipeError:
            answer = ""
        if not answer:
            process.kill()
            status = self.processes.pop(self.kind).wait()
            raise Failed(f"no answer to '{line.split()[0]}' (exit status {status})")
        if "error " in answer:
            raise Failed(answer[answer.index("error ") + 6:])
        return answer

    def case(self, text):
        """Sums by name: dtype, shape, weighted sum, norm."""
        found, self.kind = {}, text.split()[0]
        for word in self.ask("case " + text).split()[1:]:
            name, dtype, shape, weighted, norm = word.split(":")
            found[name] = dtype, [int(n) for n in shape.split("x") if n], float(weighted), float(norm)
        return found

    def round(self, way, seconds, goes):
        line = f"recorded {seconds} {goes}" if way == "graph" else f"eager {seconds}"
        return float(self.ask(line).split()[1])


TOLERANCE = {"f32": 1e-3, "tf32": 1e-2, "f16": 1e-2, "bf16": 5e-2}


def compare(case, mine, theirs, spread=None):
    """Raise Failed where two sides' sums do not agree. What is dropped is drawn, so only its amount is compared; so is where the
    gradient goes of equal 16-bit numbers of which topk takes some. spread: by name, what PyTorch's own vary by."""
    kind, op, keys, _ = case
    for name, (dtype, shape, weighted, norm) in theirs.items():
        if name not in mine:
            raise Failed(f"no {name}")
        found = mine[name]
        tolerance = TOLERANCE[keys["dtype"]] * (4 if kind == "net" else 1)
        if dtype in ("int64", "bool"):
            tolerance = 1e-9
        room = tolerance * max(norm, found[3]) + 1e-6 * math.sqrt(math.prod(shape)) + (spread.get(name, 0) if spread else 0)
        if op == "dropout":
            room = (0.05 + 20 / math.sqrt(math.prod(shape))) * norm + 1e-6
        amount = op == "dropout" or (op == "topk" and name == "dx" and dtype in ("float16", "bfloat16"))
        undefined = math.isnan(norm) and math.isnan(found[3])  # both: the variance of one element
        agrees = undefined or (abs(norm - found[3]) <= room and (amount or abs(weighted - found[2]) <= room))
        if (dtype, shape) != found[:2] or not agrees:
            raise Failed(f"{name}: PyTorch {dtype}{shape} weighted {weighted:.6g} norm {norm:.6g}, "
                         f"Paracord {found[0]}{found[1]} weighted {found[2]:.6g} norm {found[3]:.6g}")


def references(case, kind, theirs):
    """What ours may be, and how far off: PyTorch's, by what its own vary where there is a ReLU; exact ones; and an op's at
    most twice as far off these as PyTorch's, as where a gradient is 0 but for rounding. On a GPU avg_pool2d's gradient of
    channels-last pictures with a border is another number than on the CPU, which has the last word."""

    def told(found):
        return {name: theirs[name][:2] + found[name][2:] for name in theirs}

    yield theirs, None
    spread = case.spread()
    if spread:
        yield theirs, spread
    if kind == "net":
        yield told(case.exact()), None
        return
    try:
        exact = case.exact()
        yield told(exact), None
        yield theirs, {name: 2 * max(abs(theirs[name][i] - exact[name][i]) for i in (2, 3)) for name in theirs
                       if math.isfinite(sum(theirs[name][2:]))}
        yield told(case.exact("cpu")), None
    except RuntimeError:  # an op that is not for float64
        return


def compare_all(case, parsed, sides, theirs):
    """The same for each of our sides. How far results can be told is asked only where they differ."""
    failed = None
    for reference, spread in references(case, parsed[0], theirs):
        try:
            for mine in sides:
                compare(parsed, mine, reference, spread)
            return
        except Failed as differs:
            failed = failed or differs
    raise failed


class Way:
    """One of PyTorch's ways to do a case: eager, compile, graph (a CUDA graph of eager) or compile+graph."""

    def __init__(self, case, name, memory, goes, device):
        self.cuda, self.goes = device.type == "cuda", goes if "graph" in name else 1
        self.now = time.thread_time if not self.cuda and torch.get_num_threads() == 1 else time.perf_counter
        self.launch, self.count = case.body("compile" in name, "graph" in name, memory), 0
        if "graph" in name:
            self.launch = self.recorded(self.launch)

    def recorded(self, body):
        side, self.graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                body()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            for _ in range(self.goes):
                body()
        self.body = body
        return self.graph.replay

    def timed(self, count):
        launch = self.launch
        if self.cuda:
            torch.cuda.synchronize()
        start = self.now()
        for _ in range(count):
            launch()
        if self.cuda:
            torch.cuda.synchronize()
        return self.now() - start

    def round(self, seconds):
        if not self.count:
            once = [self.timed(1) for _ in range(4)][-1]
            self.count = max(1, int(seconds / max(once, 1e-7)))
        return self.timed(self.count) / self.count / self.goes * 1e6


def add_ways(ways, refused, case, names, memory, goes, device, seconds):
    """PyTorch's ways of these names that work for a case, and why others do not."""
    for name in names:
        if name in ways:
            continue
        try:
            way = Way(case, name, memory, goes, device)
            way.round(seconds)
            ways[name] = way
        except Exception as error:  # a type that it has not here, what its compiler or a recording cannot do
            refused[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]


def faster_memory(ways, case, name, goes, device, seconds):
    """The memory order in which a network's step is faster; its way is kept."""
    if len(case.formats) == 1:
        return case.formats[0]
    trial = {memory: Way(case, name, memory, goes, device) for memory in case.formats}
    times = {memory: statistics.median(way.round(seconds) for _ in range(3)) for memory, way in trial.items()}
    memory = min(times, key=times.get)
    ways[name] = trial[memory]
    return memory


def ways_of(case, options, goes, device, ours):
    """All of PyTorch's ways that are asked for; torch.compile, which takes long to begin, where it could matter."""
    ways, refused, seconds = {}, {}, options.round
    plain = [name for name in options.ways if "compile" not in name] or options.ways
    memory = faster_memory(ways, case, plain[0], goes, device, seconds)
    add_ways(ways, refused, case, plain, memory, goes, device, seconds)
    compiled = [name for name in options.ways if name not in plain]
    if not ways or min(way.round(seconds) for way in ways.values()) < options.compile_below * ours:
        add_ways(ways, refused, case, compiled, memory, goes, device, seconds)
    else:
        refused.update({name: f"not tried: the ratio without is above {options.compile_below:g}" for name in compiled})
    return ways, refused


def measure(text, parsed, program, options, device):
    """Microseconds of each way of both sides: medians of rounds in turns."""
    own, ways = {"eager": (program, "eager"), "graph": (program, "graph")}, {}
    if program.measured:
        own["measured"] = program.measured, "graph"
    sides = [program.case(text) for program in {program for program, _ in own.values()}]
    case = drawn_torch.case_of(parsed, device)
    small = parsed[0] == "op" and sum(t.numel() * t.element_size() for t in case.inputs) <= 16 << 20
    goes = 10 if small and device.type == "cuda" else 1
    first = min(side.round(way, options.round, goes) for side, way in own.values())
    try:
        results = case.results()
    except NotImplementedError as error:
        refused = {"all": str(error).splitlines()[0]}
    else:
        compare_all(case, parsed, sides, results)
        ways, refused = ways_of(case, options, goes, device, first)
    ours, theirs = {name: [] for name in own}, {name: [] for name in ways}
    for turn in range(options.rounds):
        for name, (side, way) in own.items():
            ours[name].append(side.round(way, options.round, goes))
        for name, way in ways.items():
            theirs[name].append(way.round(options.round))
    for side in {side for side, _ in own.values()}:
        side.ask("end")
    middle = lambda side: {name: statistics.median(times) for name, times in side.items()}
    return middle(ours), middle(theirs), refused
