"""ECDSA signatures over P-256 and SHA-256, checked with Python alone (FIPS 186-5, section 6.4.2).

Everything here is public, so it need not hide how long it takes. It is for checking only: never sign like this."""
from hashlib import sha256

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
G = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
     0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)


def on_curve(x, y):
    return 0 <= x < P and 0 <= y < P and (y * y - x**3 + 3 * x - B) % P == 0


def add(a, b):
    """The sum of two points; None is the point at infinity."""
    if a is None or b is None:
        return a or b
    if a[0] != b[0]:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    elif (a[1] + b[1]) % P == 0:
        return None
    else:
        slope = (3 * a[0] * a[0] - 3) * pow(2 * a[1], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(n, point):
    total = None
    while n:
        if n & 1:
            total = add(total, point)
        point, n = add(point, point), n >> 1
    return total


def verify(key, text, signature):
    """Whether signature, r and s of 32 bytes each, is key's under text."""
    if len(signature) != 64 or not on_curve(*key):
        return False
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    if not (0 < r < N and 0 < s < N):
        return False
    w = pow(s, -1, N)
    point = add(times(int.from_bytes(sha256(text).digest(), "big") * w % N, G), times(r * w % N, key))
    return point is not None and point[0] % N == r
