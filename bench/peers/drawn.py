"""Drawn ops and training steps here and in PyTorch, in turns: each ratio, their geometric mean, the worst.

Usage: drawn.py SEED N [--device cpu|cuda] [--only PATTERN] [--seconds T] [--json FILE]
       drawn.py --case 'TEXT' [--device cpu|cuda]          one case, as a table names it

A ratio is PyTorch's best time over our best, above 1: ours is faster. PyTorch's ways are eager and torch.compile, on a
GPU also CUDA graphs of both, networks in the faster of its memory orders; ours are eager and a recording.
First both compute the case once from the same numbers: where they do not agree it is an error and has no ratio.
docs/drawn.md says how cases are drawn and what a line means. The exit status is 1 after errors.
"""
import argparse
import gc
import glob
import json
import logging
import math
import os
import re
import subprocess
import sys
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("n", type=int, nargs="?", default=60)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: the first GPU")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="begin with case K, from 0: to go on with a seed")
    parser.add_argument("--only", default="", help="of the drawn cases those that this regular expression finds")
    parser.add_argument("--case", action="append", help="this case instead of drawn ones")
    parser.add_argument("--list", action="store_true", help="print the cases, measure nothing")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no case after so long")
    parser.add_argument("--json", help="a file for all of it")
    parser.add_argument("--program", help="bench.drawn; found beside this folder or in build/")
    parser.add_argument("--threads", type=int, default=0, help="of both sides on the CPU; 1: the processor's time is taken")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--round", type=float, default=0.04, help="seconds of a round")
    parser.add_argument("--ways", help="PyTorch's, of eager,compile,graph,compile+graph")
    parser.add_argument("--compilers", type=int, default=0, metavar="P",
                        help="let P processes compile cases before they are measured, for PyTorch's cache on disk")
    parser.add_argument("--compile-part", help=argparse.SUPPRESS)
    parser.add_argument("--compile-below", type=float, default=math.inf, metavar="RATIO",
                        help="compile only what has a smaller ratio without; with --compilers those are measured again")
    options = parser.parse_args()
    kind = options.device.split(":")[0]
    if kind not in ("cpu", "cuda"):
        parser.error(f"--device {options.device}: PyTorch is measured on cpu and cuda")
    known = ["eager", "compile"] if kind == "cpu" else ["graph", "eager", "compile", "compile+graph"]
    options.ways = options.ways.split(",") if options.ways else known
    if set(options.ways) - set(known):
        parser.error(f"--ways: on {kind} there are {','.join(known)}")
    return options, kind


def program_of(given):
    """The program and its environment: in the package it lies beside the folder peers, in a checkout in build/PRESET."""
    built = sorted(glob.glob(os.path.join(HERE, "../../build/*/bench/bench.drawn")), key=os.path.getmtime)
    found = [path for path in [given, os.path.join(HERE, "../bench.drawn")] + built[::-1] if path and os.path.exists(path)]
    if not found:
        sys.exit("drawn.py: no bench.drawn here: build it (ninja bench.drawn), or say where it is with --program")
    folder, environment = os.path.dirname(os.path.abspath(found[0])), dict(os.environ)
    for plugins in (os.path.join(folder, "../../../lib"), os.path.join(folder, "..")):
        if os.path.exists(os.path.join(plugins, "libparacord-cuda.so")):
            environment.setdefault("PARACORD_PLUGIN_PATH", os.path.abspath(plugins))
    return found[0], environment


def compile_part(texts, part, device):
    """Every so-manyth case is compiled and run once; what fails here fails again where it is told."""
    import drawn_cases
    import drawn_torch
    import torch

    first, step = (int(n) for n in part.split("/"))
    for text in texts[first::step]:
        try:
            case = drawn_torch.case_of(drawn_cases.parse(text), device)
            for memory in getattr(case, "formats", [None]):
                case.body(True, False, memory)()
        except Exception as error:
            print(f"{type(error).__name__} {text}", file=sys.stderr)
        case = None
        clean(device.type)


def compile_first(texts, options):
    """Other processes fill the cache on disk that this one then reads."""
    start, count = time.monotonic(), options.compilers
    command = [sys.executable, sys.argv[0], "--device", options.device]
    for text in texts:
        command += ["--case", text]
    parts = [subprocess.Popen([*command, "--compile-part", f"{i}/{count}"], stderr=subprocess.DEVNULL) for i in range(count)]
    for part in parts:
        part.wait()
    print(f"{len(texts)} compiled by {count} processes in {time.monotonic() - start:.0f} s", flush=True)


def best(side):
    name = min(side, key=side.get)
    return side[name], name


def row_of(text, ours, theirs, refused):
    row = dict(case=text, ours=ours, peer=theirs, peer_refuses=refused, ratio=None)
    if theirs:
        row["ratio"] = best(theirs)[0] / best(ours)[0]
    return row


def shown(row):
    (mine, way), (peer, by) = best(row["ours"]), best(row["peer"]) if row["peer"] else (math.nan, "refuses")
    return f"{row['ratio'] or math.nan:7.3f} {mine:10.2f} {way:6} {peer:10.2f} {by:14} {row['case']}"


def summary_of(rows):
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    if not ratios:
        return None
    return dict(cases=len(ratios), mean=math.exp(sum(map(math.log, ratios)) / len(ratios)),
                below=sum(r < 0.9 for r in ratios) / len(ratios))


def report(rows, errors, options):
    print()
    parts = {"all": rows, "ops": [r for r in rows if r["case"].startswith("op ")],
             "networks": [r for r in rows if r["case"].startswith("net ")]}
    for name, part in parts.items():
        found = summary_of(part)
        if found:
            print(f"{name}: {found['cases']} cases, geometric mean {found['mean']:.3f}, below 0.9: {found['below']:.0%}")
    worst = sorted((row for row in rows if row["ratio"]), key=lambda row: row["ratio"])[:10]
    print(f"the worst; again: drawn.py --device {options.device} --case 'TEXT'")
    for row in worst:
        print(shown(row))
    for row in rows:
        if not row["peer"]:
            print(f"no ratio: {row['case']}\n    PyTorch: {'; '.join(row['peer_refuses'].values())}")
    for text, why in errors:
        print(f"error: {text}\n    {why}")
    print(f"{len(errors)} errors")


def clean(kind):
    import torch

    if "torch._dynamo" in sys.modules:  # which takes long to import, for nothing where nothing is compiled
        torch.compiler.reset()
    gc.collect()
    if kind == "cuda":
        torch.cuda.empty_cache()


def stretch(texts, options, device, begin, tell):
    """A row, or an error, for each case is told and printed, and that there is time for no more."""
    import drawn_cases
    import drawn_turns

    program = drawn_turns.Program(*program_of(options.program), str(device), options.threads)
    for i, text in enumerate(texts):
        if time.perf_counter() - begin > options.seconds:
            print(f"no more cases after {options.seconds:g} s: {i} of {len(texts)}", flush=True)
            break
        try:
            row = row_of(text, *drawn_turns.measure(text, drawn_cases.parse(text), program, options, device))
            tell(dict(row=row))
            print(shown(row), flush=True)
        except KeyboardInterrupt:
            print("stopped", flush=True)
            break
        except Exception as error:
            words = str(error).splitlines() or [""]
            why = f"{type(error).__name__}: {words[0]}"
            tell(dict(error=(text, why)))
            print(f"  error {text}\n        {why}", flush=True)
        clean(device.type)


def measured(texts, options, device, begin):
    """Rows and errors, from a process that another one follows where a case ends it: some end PyTorch's."""
    rows, errors, at = [], [], 0
    while at < len(texts):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            with os.fdopen(writing, "w") as out:
                stretch(texts[at:], options, device, begin, lambda found: print(json.dumps(found), file=out, flush=True))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            for found in map(json.loads, told):
                at += 1
                if "row" in found:
                    rows.append(found["row"])
                else:
                    errors.append(tuple(found["error"]))
        ended = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(ended) or at == len(texts):
            break
        errors.append((texts[at], f"PyTorch's process was ended by signal {os.WTERMSIG(ended)}"))
        print(f"  error {texts[at]}\n        {errors[-1][1]}", flush=True)
        at += 1
    return rows, errors


def in_two_parts(texts, options, device, begin):
    """All without compiling; then those below the ratio once more, which other processes compile in between."""
    plain = argparse.Namespace(**{**vars(options), "ways": [way for way in options.ways if "compile" not in way]})
    rows, errors = measured(texts, plain, device, begin)
    low = [row["case"] for row in rows if not row["ratio"] or row["ratio"] < options.compile_below]
    compile_first(low, options)
    again, more = measured(low, options, device, begin)
    newer = {row["case"]: row for row in again}
    return [newer.get(row["case"], row) for row in rows], errors + more


def main():
    options, kind = options_of()
    import drawn_cases

    texts = options.case or [drawn_cases.draw(options.seed, i, kind) for i in range(options.first, options.n)]
    texts = [text for text in texts if re.search(options.only, text)]
    if options.list:
        print(*texts, sep="\n")
        return 0
    in_parts = options.compilers > 0 and math.isfinite(options.compile_below)
    if options.compilers and not in_parts:
        compile_first(texts, options)
    if kind == "cpu" or options.compile_part:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of processes beside what is measured
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import torch

    device, begin = torch.device("cuda:0" if kind == "cuda" else "cpu"), time.perf_counter()
    torch.backends.cudnn.benchmark = True
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.compile_part:
        return compile_part(texts, options.compile_part, device)
    print(f"{'ratio':>7} {'ours us':>10} {'':6} {'peer us':>10} {'':14} case; PyTorch {torch.__version__}", flush=True)
    rows, errors = (in_two_parts if in_parts else measured)(texts, options, device, begin)
    report(rows, errors, options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(dict(pytorch=torch.__version__, device=str(device), seed=options.seed, summary=summary_of(rows),
                           results=rows, errors=errors), file, indent=1)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
