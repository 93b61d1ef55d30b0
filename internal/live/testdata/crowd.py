"""A crowd that writes down every request and every answer, as they were.

    python3 crowd.py LOG PEOPLE SECONDS STAY FULL URL...

PEOPLE come to the waiting room "shop" within SECONDS, each to one of the gateways
at URL; they wait as they are told, go in when they are called, stay for STAY
seconds give or take a half, and end their visit. Nobody leaves before FULL people
have been inside at once for a second. Only Python's standard library.
"""

import asyncio
import json
import random
import sys
import time
from urllib.parse import urlsplit

CONNECTIONS = 150  # to each gateway


class Gateway:
    """Connections that are kept, to one gateway."""

    def __init__(self, url, log):
        parts = urlsplit(url)
        self.host, self.port, self.log = parts.hostname, parts.port, log
        self.idle, self.free = [], asyncio.Semaphore(CONNECTIONS)

    async def post(self, what, body):
        path = "/_anteroom/v1/rooms/shop/" + what
        text = json.dumps(body) if body else ""
        async with self.free:
            sent = time.time()
            try:
                status, answer = await self.exchange(path, text)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                return 0, {}
            got = time.time()
        line = {"sent": sent, "got": got, "path": path, "body": text, "status": status, "answer": answer}
        self.log.write(json.dumps(line) + "\n")
        return status, json.loads(answer) if answer else {}

    async def exchange(self, path, text):
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection(self.host, self.port)
        head = f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        writer.write((head + text).encode())
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status, length, close = int(lines[0].split(" ")[1]), 0, False
        for line in lines[1:]:
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                length = int(value)
            close = close or name.lower() == "connection" and value.strip().lower() == "close"
        answer = (await reader.readexactly(length)).decode()
        if close:
            writer.close()
        else:
            self.idle.append((reader, writer))
        return status, answer


class Site:
    """How many are inside, and whether it has been full."""

    def __init__(self, full):
        self.full, self.inside, self.was_full = full, 0, asyncio.Event()

    async def visit(self, stay):
        self.inside += 1
        if self.inside == self.full and not self.was_full.is_set():
            await asyncio.sleep(1)
            self.was_full.set()
        await asyncio.gather(self.was_full.wait(), asyncio.sleep(stay))
        self.inside -= 1


async def person(gateway, site, after, stay):
    await asyncio.sleep(after)
    held, what = None, "join"
    while True:
        status, answer = await gateway.post(what, {"ticket": held} if held else None)
        if status in (0, 429, 503):
            await asyncio.sleep(0.5)
            continue
        if status >= 400 and what != "leave":
            raise SystemExit(f"{what}: {status} {answer}")
        held = answer.get("ticket", held)
        if answer.get("state") == "admitted":
            break
        if answer.get("state") == "called":
            what = "leave"
            continue
        what = "checkin"
        await asyncio.sleep(max(0.05, answer.get("refresh_interval_seconds", 1)))
    await site.visit(stay)
    while (await gateway.post("end", {"pass": answer["pass"]}))[0] != 204:
        await asyncio.sleep(0.5)


async def main(log, people, seconds, stay, full, urls):
    rng, site = random.Random(1), Site(full)
    with open(log, "w", encoding="utf-8") as out:
        gateways = [Gateway(url, out) for url in urls]
        await asyncio.gather(*(
            person(gateways[i % len(gateways)], site, rng.uniform(0, seconds), rng.uniform(0.5, 1.5) * stay) for i in range(people)
        ))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]), sys.argv[6:]))
