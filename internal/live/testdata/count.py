"""Counts people in a log of requests and answers, and prints JSON.

    python3 count.py LOG

It knows nothing but the log: who somebody is follows from the tickets and passes
that go from each answer into the next request. Times are of the crowd's own clock:
a wait runs from the request to join to the answer with the pass, and somebody is on
the site from there until the request that ends the visit.
"""

import json
import math
import sys


def percentile(values, share):
    return sorted(values)[math.ceil(share * len(values)) - 1]


def count(lines):
    of = {}  # person, by ticket or pass
    joined, admitted, waited, changes = [], {}, [], []
    walked = 0
    for line in sorted(lines, key=lambda l: l["got"]):
        what = line["path"].rsplit("/", 1)[1]
        body = json.loads(line["body"]) if line["body"] else {}
        answer = json.loads(line["answer"]) if line["answer"] else {}
        if what == "join":
            if line["status"] >= 300:
                continue
            who = len(joined)
            joined.append(line["sent"])
        else:
            who = of[body.get("ticket") or body.get("pass")]
        for key in ("ticket", "pass"):
            if answer.get(key):
                of[answer[key]] = who
        if answer.get("state") == "admitted" and who not in admitted:
            admitted[who] = line["got"]
            changes.append((line["got"], 1))
            if what == "join" and answer.get("called_in_wave") is None:
                walked += 1  # or else there was a line, and the request waited until a wave had called
            else:
                waited.append(line["got"] - joined[who])
        if what == "end" and line["status"] == 204:
            changes.append((line["sent"], -1))
    now = most = 0
    for _, by in sorted(changes):
        now += by
        most = max(most, now)
    return {
        "came": len(joined), "got_in": len(admitted), "walked_in": walked, "left": sum(by < 0 for _, by in changes),
        "most_at_once": most, "waited": len(waited), "p50": percentile(waited, 0.5), "p95": percentile(waited, 0.95),
    }


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as log:
        print(json.dumps(count([json.loads(line) for line in log])))
