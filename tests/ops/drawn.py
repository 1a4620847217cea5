"""Random ops and networks on the emulated GPU and on the CPU: python3 drawn.py PROGRAM SEED CASES

PROGRAM is bench.drawn, which docs/drawn.md describes; the cases are drawn as there, but small. Shape, dtype, a weighted
sum and the norm of every result and gradient must agree within what the dtype allows. Exit status 1: some do not, each of
which is printed.
"""
import math
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))
import drawn_cases  # noqa: E402

SMALL = dict(elements=20000, flops=2e6, step=1e6, parameters=1 << 16, classes=300)
TOLERANCE = {"float16": 2e-2, "bfloat16": 2e-2, "float32": 2e-4, "int64": 0, "bool": 0}


def small_case(seed, number):
    d = drawn_cases.Drawer(seed, number, "cuda")
    d.limit = SMALL
    families = [family for _, family in drawn_cases.FAMILIES]
    text = families[number % len(families)](d)
    return text.replace("dtype=tf32", "dtype=f32")  # a CPU has no TF32


def answers(program, device, cases):
    text = "".join(f"case {case}\nend\n" for case in cases)
    run = subprocess.run([program, device], input=text, capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if line != "ok"]
    if run.returncode or len(lines) != len(cases):
        sys.exit(f"{program} {device}: status {run.returncode}, {len(lines)} answers to {len(cases)} cases: {run.stderr[-300:]}")
    return lines


def close(a, b, room):
    """NaN, as the variance of one number is, agrees with NaN."""
    return abs(a - b) <= room or (a != a and b != b)


def agree(a, b, case):
    """Two tensors as bench.drawn prints them: name:dtype:shape:weighted sum:norm."""
    if a == b:
        return True
    (*what, sum_a, norm_a), (*other, sum_b, norm_b) = a.split(":"), b.split(":")
    if what != other:
        return False
    autocast = case.startswith("net dtype=bf16") and what[1] == "float32"
    rounding = 1e-6 * math.sqrt(math.prod(int(n) for n in what[2].split("x") if n))  # of what is 0 but for that
    room = TOLERANCE["bfloat16" if autocast else what[1]] * max(abs(float(norm_a)), 1e-3) + rounding
    return close(float(sum_a), float(sum_b), room) and close(float(norm_a), float(norm_b), room)


def main():
    program, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    cases = [small_case(seed, number) for number in range(count)]
    bad = 0
    for case, a, b in zip(cases, answers(program, "cpu", cases), answers(program, "cuda:0", cases)):
        x, y = a.split(), b.split()
        if a == b or (x[0] == y[0] == "ok" and len(x) == len(y) and all(agree(p, q, case) for p, q in zip(x[1:], y[1:]))):
            continue
        bad += 1
        print(f"{case}\n  cpu   {a[:300]}\n  cuda  {b[:300]}")
    print(f"{count} cases, {bad} differ")
    sys.exit(bad > 0)


main()
