#!/usr/bin/env python3
"""Check the draw of an event: verify_draw.py DRAW.json [COMMITMENT] [ADMISSIONS.jsonl ...]

DRAW.json is the "draw" object that the waiting room answered after the start, or a whole answer. COMMITMENT is
what it showed before. Admission logs of the nodes, if the operator publishes them, show that the order was kept.
"""
import hashlib, hmac, json, sys

def key(seed, start, ticket):
    mac = hmac.new(bytes.fromhex(seed), bytes.fromhex(ticket), hashlib.sha256).digest()
    return int.from_bytes(mac[:8], "big") * start >> 64

def check(ok, text):
    print(("good: " if ok else "BAD:  ") + text)
    return ok

def main(name, *more):
    draw = json.load(open(name))
    draw = draw.get("draw", draw)
    seed, start, mine = draw["seed"], draw["start"], key(draw["seed"], draw["start"], draw["ticket"])
    ok = check(hashlib.sha256(bytes.fromhex(seed)).hexdigest() == draw["commitment"], "the seed is the one that was committed to")
    ok &= check(mine == draw["key"], f"your key is {mine}, the smallest of all goes first")
    turns = []
    for arg in more:
        if len(arg) == 64 and not arg.endswith(".jsonl"):
            ok &= check(arg == draw["commitment"], "the commitment is what you were shown before")
            continue
        turns += [e for e in map(json.loads, open(arg)) if e["event"] == "entitled" and e["joined"] < start and e["at"] >= start]
    if turns:
        turns.sort(key=lambda e: (e["epoch"], e["stamp"], e["key_id"]))
        wrong = [e for e in turns if e["stamp"] != key(seed, start, e["ticket"])]
        ok &= check(not wrong, f"{len(turns)} turns in the log go by the key of their ticket")
        late = [e for e, f in zip(turns, turns[1:]) if (e["stamp"], e["key_id"]) > (f["stamp"], f["key_id"])]
        ok &= check(not late, "nobody had a turn before somebody with a smaller key")
        print(f"you were number {1 + sum(e['stamp'] < mine for e in turns)} of {len(turns)}")
    return 0 if ok else 1

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
