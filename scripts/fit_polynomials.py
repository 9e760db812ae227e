#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints lib/rewrite/rules/polynomials.h (needs mpmath).

Each row approximates a reduced function g on an interval by a near-minimax polynomial (least squares at Chebyshev
nodes); the caller's formula adds the leading terms exactly. Coefficients are rounded one after the other from the lowest
degree, each time refitting the rest, so that rounding errors of early ones are absorbed by later ones.
"""
import struct
import sys
import textwrap

from mpmath import mp, mpf, matrix, sqrt, log, exp, tanh, erf, erfc, sin, cos, pi, atanh, polyval

mp.dps = 60


def f32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def f64(x):
    return mpf(float(x))


def least_squares(g, a, b, first, n):
    """The n coefficients of degrees first.. that fit g best at Chebyshev nodes (near-minimax)."""
    m = 4 * (first + n) + 8
    nodes = [(a + b) / 2 + (b - a) / 2 * mp.cos(pi * (2 * i + 1) / (2 * m)) for i in range(m)]
    rows = matrix([[x ** (first + k) for k in range(n)] for x in nodes])
    return list(mp.qr_solve(rows, matrix([g(x) for x in nodes]))[0])


def fit(name, g, a, b, n, rnd, doc):
    a, b, done = mpf(a), mpf(b), []
    base = lambda x: g(x if abs(x) > mpf("1e-18") else mpf("1e-18"))  # removable singularities
    while len(done) < n:
        rest = lambda x: base(x) - polyval(done[::-1], x) if done else base(x)
        done.append(rnd(least_squares(rest, a, b, len(done), n - len(done))[0]))
    grid = [a + (b - a) * i / 500 for i in range(501)]
    error = max(abs(polyval(done[::-1], x) - base(x)) for x in grid)
    kind, digits = ("float", 9) if rnd is f32 else ("double", 17)
    print(f"/// {doc}: absolute error {float(error):.1e}.")
    body = textwrap.fill(", ".join(mp.nstr(c, digits) + ("f" if kind == "float" else "") for c in done), 112)
    print(f"inline constexpr {kind} k{name}[] = {{\n" + textwrap.indent(body, "    ") + "};")
    sys.stdout.flush()


def parts(name, x, bits, count, doc):
    """x as a sum of `count` doubles, all but the last with `bits` bits: their products with small integers are exact."""
    out, rest = [], mpf(x)
    for i in range(count):
        if i + 1 < count:
            e = mp.frexp(rest)[1]
            c = mp.nint(rest * mpf(2) ** (bits - e)) / mpf(2) ** (bits - e)
        else:
            c = f64(rest)
        out.append(c)
        rest -= c
    print(f"/// {doc}.")
    print(f"inline constexpr double k{name}[] = {{{', '.join(float(c).hex() for c in out)}}};")


print("""// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Printed by scripts/fit_polynomials.py: change that, not this.
// clang-format off
namespace tgc::coefficients {
""")
ln2 = log(2)
parts("Ln2F32", ln2, 9, 2, "ln 2, 9 bits and the rest")
parts("Ln2", ln2, 32, 2, "ln 2, 32 bits and the rest")
parts("HalfPiF32", pi / 2, 26, 2, "pi/2, 26 bits and the rest")
parts("HalfPi", pi / 2, 30, 4, "pi/2, three times 30 bits and the rest")
parts("Log2E", 1 / ln2, 53, 2, "log2 e in two doubles")
parts("TwoThirds", mpf(2) / 3, 53, 2, "2/3 in two doubles")

h = ln2 / 2 * mpf("1.01")
fit("ExpF32", lambda r: (exp(r) - 1 - r) / r**2, -h, h, 5, f32, "e^r = 1 + r + r^2 p(r), |r| <= ln2/2")
fit("ExpF64", lambda r: (exp(r) - 1 - r) / r**2, -h, h, 11, f64, "the same")
fit("LogF32", lambda f: (log(1 + f) - f + f * f / 2) / f**3, sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 9, f32,
    "log(1+f) = f - f^2/2 + f^3 p(f), sqrt(1/2) <= 1+f <= sqrt(2)")
s = (sqrt(2) - 1) / (sqrt(2) + 1)
at = lambda z: 2 * (atanh(sqrt(z)) / sqrt(z) - 1) / z
fit("LogF64", at, 0, s * s * mpf("1.01"), 9, f64, "2 atanh(s) = 2 s + s z p(z), z = s^2, s = f/(2+f)")
fit("PowLogF64", lambda z: (at(z) - mpf(2) / 3) / z, 0, s * s * mpf("1.01"), 8, f64,
    "2 atanh(s) = 2 s + s z (2/3 + z p(z))")
fit("TanhF32", lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z, 0, mpf("0.625") ** 2, 6, f32,
    "tanh x = x + x z p(z), z = x^2, |x| <= 0.625")
fit("TanhF64", lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z, 0, mpf("0.625") ** 2, 13, f64, "the same")
fit("ErfF32", lambda z: erf(sqrt(z)) / sqrt(z) - 1, 0, 1, 8, f32, "erf x = x + x p(z), z = x^2, |x| <= 1")
fit("ErfF64", lambda z: erf(sqrt(z)) / sqrt(z) - 1, 0, 1, 15, f64, "the same")
fit("ErfcF32", lambda t: log(erfc(t + 2)) + (t + 2) ** 2, -1, 2, 9, f32,
    "erfc a = exp(p(a - 2) - a^2), 1 <= a <= 4")
near = lambda t: log(erfc(t + 2)) + (t + 2) ** 2
fit("ErfcNearF64", near, -1, mpf("1.1"), 17, f64, "erfc a = exp(p(a - 2) - a^2), 1 <= a <= 3")
far = lambda t: log(erfc(t + mpf("4.5"))) + (t + mpf("4.5")) ** 2
fit("ErfcFarF64", far, -1.6, 1.6, 12, f64, "erfc a = exp(p(a - 4.5) - a^2), 3 <= a <= 6")
q = pi / 4 * mpf("1.001")
fit("SinF32", lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, 0, q * q, 4, f32, "sin r = r + r z p(z), z = r^2, |r| <= pi/4")
fit("CosF32", lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, 0, q * q, 3, f32, "cos r = 1 - z/2 + z^2 p(z)")
fit("SinF64", lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, 0, q * q, 7, f64, "sin r, f64")
fit("CosF64", lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, 0, q * q, 7, f64, "cos r, f64")
g = ln2 / 2 * mpf("1.01")
fit("ExpShortF64", lambda r: (exp(r) - 1) / r, -g, g, 9, f64, "e^r = 1 + r p(r) to f32's needs, |r| <= ln2/2")
print("\n} // namespace tgc::coefficients")
