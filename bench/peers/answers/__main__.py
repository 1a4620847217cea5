"""Answers of Paracord's ops beside PyTorch's, case by case: refused or not, dtype, shape, values, gradients.

    python3 answers --lib libparacord.so [--device cpu] [--op REGEX]      every op with every dtype and odd shapes
    python3 answers --lib libparacord.so --programs 5000 --seed 7         programs drawn from a seed
    python3 answers --programs 5000 --seed 7 --write FILE                 PyTorch's answers alone ...
    python3 answers --lib libparacord.so --device cuda:0 --read FILE      ... for where there is no PyTorch

Differences that docs/pytorch.md names are counted by its rows (known.py); others are shown, and the exit status is 1.
PyTorch computes on the CPU, whatever the device.
"""
import argparse
import collections
import json
import re
import sys

import cases
import compare
import known
import ours
import programs


def asked(options):
    if options.read:
        with open(options.read) as file:
            for line in file:
                case = json.loads(line)
                yield case, case.pop("answer")
        return
    import torch_side
    drawn = programs.drawn(options.seed, options.programs, torch_side) if options.programs else cases.systematic()
    for case in drawn:
        if re.search(options.op, case["name"]):
            yield case, torch_side.run(case)


def main():
    parser = argparse.ArgumentParser(prog="answers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", help="libparacord.so")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--op", default="", help="only ops that this regular expression finds")
    parser.add_argument("--programs", type=int, default=0, help="so many programs, in place of every op")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", help="write cases with PyTorch's answers")
    parser.add_argument("--read", help="take cases and answers from such a file")
    parser.add_argument("--show", type=int, default=3, help="so many cases of each kind of difference")
    options = parser.parse_args()
    if options.write:
        with open(options.write, "w") as file:
            for case, answer in asked(options):
                file.write(json.dumps({**case, "answer": answer}) + "\n")
        return 0
    if not options.lib:
        parser.error("--lib says where libparacord.so is")
    library, count = ours.Library(options.lib, options.device), 0
    rows, others = collections.Counter(), collections.defaultdict(list)
    for case, answer in asked(options):
        count += 1
        got = ours.run(library, case)
        difference = compare.difference(case, answer, got)
        if difference:
            row = known.row(case, answer, got, difference)
            rows[row] += 1
            if not row:
                others[case["name"], difference[0]].append((case, difference[1]))
    for (name, kind), found in sorted(others.items()):
        print(f"{name}: {kind}, {len(found)} cases")
        for case, text in found[:options.show]:
            print("   ", compare.describe(case), "\n       ", text)
    print(f"{count} cases: {sum(rows.values())} differ, {rows.pop(None, 0)} of them in ways that docs/pytorch.md does not name")
    for row, n in sorted(rows.items()):
        print(f"  {n:6} {row}")
    return 1 if others else 0


sys.exit(main())
