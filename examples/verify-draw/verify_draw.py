#!/usr/bin/env python3
"""Check the draw of an event: verify_draw.py DRAW.json [COMMITMENT] [ADMISSIONS.jsonl ...]

DRAW.json is the "draw" object that the waiting room answered after the start, or a whole answer. COMMITMENT is
what it showed before. Admission logs of the nodes, if the operator publishes them, show that the order was kept.
They may have other rooms in them, and other lives of the cluster.
"""
import hashlib, hmac, json, sys

SKEW = 1_000_000  # the clocks of two nodes differ by less, in µs
BACK = {"parked", "taken_over", "given"}  # who was out of line, or came from a node that is gone, may come late

def key(seed, start, ticket):
    mac = hmac.new(bytes.fromhex(seed), bytes.fromhex(ticket), hashlib.sha256).digest()
    return int.from_bytes(mac[:8], "big") * start >> 64

def check(ok, text):
    print(("good: " if ok else "BAD:  ") + text)
    return ok

def read(name):
    """The lines of a log. A last one that was cut short, as by a crash, is left out."""
    with open(name) as log:
        return [json.loads(line) for line in log if line.endswith("\n")]

def times(log):
    """Lines whose time cannot be: before the one above it of the same node, or before its visitor joined."""
    last = {}
    for e in log:
        if e["at"] < max(last.get(e["node"], 0), e["joined"]) - SKEW:
            yield e
        last[e["node"]] = max(last.get(e["node"], 0), e["at"])

def firsts(log):
    """The first turn of each ticket, since one that is taken over has another, and the tickets that may have had it late."""
    turns, away = {}, {}
    for e in log:
        ticket = e["ticket"]
        if e["event"] in BACK:
            away[ticket] = min(e["at"], away.get(ticket, e["at"]))
        elif e["event"] == "entitled" and wave(e) < wave(turns.get(ticket, LAST)):
            turns[ticket] = e
    return list(turns.values()), {t for t, at in away.items() if t in turns and at <= turns[t]["at"]}

def wave(e):
    """The founding of the cluster, which happens anew when all nodes have stopped, and the wave of that cluster."""
    return e.get("line", 0), e["epoch"]

LAST = {"line": 1 << 64, "epoch": 0}

def order(log, draw, room):
    seed, start, mine = draw["seed"], draw["start"], draw["ticket"]
    rooms = {e["room"] for e in log if e["ticket"] == mine} or {room}
    if rooms - {room, None} != rooms or room and rooms != {room}:
        return check(False, "your ticket is not in the log; give a whole answer, which names the room, if you had no turn yet")
    log = [e for e in log if e["room"] in rooms]
    wrong = list(times(log))
    ok = check(not wrong, "the times in the log agree with its order" + "".join(f"; {e['at']} of {e['ticket']}" for e in wrong[:1]))
    turns, back = firsts(log)
    before = [e for e in turns if e["stamp"] == e["joined"] and e["at"] < start + SKEW]  # by joining: the doors were not open
    drawn = [e for e in turns if e["joined"] < start and e not in before]
    wrong = [e for e in drawn if e["stamp"] != key(seed, start, e["ticket"]) or e["at"] < start - SKEW]
    ok &= check(not wrong, f"{len(drawn)} turns in the log go by the key of their ticket, after the start")
    punctual = [e for e in drawn if e["ticket"] not in back]
    punctual.sort(key=lambda e: (*wave(e), e["stamp"], e["key_id"]))
    late = [e for e, f in zip(punctual, punctual[1:]) if (e["stamp"], e["key_id"]) > (f["stamp"], f["key_id"])]
    ok &= check(not late, "nobody had a turn before somebody with a smaller key")
    if len(punctual) < len(drawn):
        print(f"      {len(drawn) - len(punctual)} were silent for a while, or with a node that went, and may have had theirs later")
    own = key(seed, start, mine)
    print(f"you were number {1 + sum(e['stamp'] < own for e in drawn)} of {len(drawn)}")
    return ok

def main(name, *more):
    answer = json.load(open(name))
    draw = answer.get("draw", answer)
    mine = key(draw["seed"], draw["start"], draw["ticket"])
    ok = check(hashlib.sha256(bytes.fromhex(draw["seed"])).hexdigest() == draw["commitment"], "the seed is the one that was committed to")
    ok &= check(mine == draw["key"], f"your key is {mine}, the smallest of all goes first")
    logs = [arg for arg in more if len(arg) != 64 or arg.endswith(".jsonl")]
    for arg in more:
        if arg not in logs:
            ok &= check(arg == draw["commitment"], "the commitment is what you were shown before")
    if logs:
        ok &= order([e for log in logs for e in read(log)], draw, answer.get("room"))
    return 0 if ok else 1

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
