"""A site behind a waiting room that checks the pass of every request. It needs Python 3.9 and nothing else:
    python3 server.py http://127.0.0.1:8080/_anteroom/.well-known/jwks.json shop 9000"""
import base64, functools, http.server, json, sys, threading, time, urllib.request

import p256

JWKS, ROOM, PORT = sys.argv[1:]
LEEWAY = 30  # seconds by which the clocks may differ
keys, fetched, lock = {}, float("-inf"), threading.Lock()

def decode(part):
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)

def key_named(kid):
    """A strange name makes it fetch at most every ten seconds. While no node answers the known keys work."""
    global keys, fetched
    with lock:
        if time.monotonic() - fetched > (300 if kid in keys else 10):
            fetched = time.monotonic()
            try:
                with urllib.request.urlopen(JWKS, timeout=5) as answer:
                    found = [k for k in json.load(answer)["keys"] if (k.get("kty"), k.get("crv")) == ("EC", "P-256")]
                number = lambda part: int.from_bytes(decode(part), "big")
                keys = {k["kid"]: (number(k["x"]), number(k["y"])) for k in found} or keys
            except (OSError, ValueError, KeyError) as e:
                print("the keys:", e, file=sys.stderr)
        return keys.get(kid)

@functools.lru_cache(10_000)  # a pass comes with every request of its visitor, and takes some 10 ms
def signed(key, text, signature):
    return p256.verify(key, text.encode(), decode(signature))

def check(token):
    """What the pass says, or None if it is not good."""
    try:
        head, body, signature = token.split(".") if len(token) <= 4096 else ""
        header = json.loads(decode(head))
        key = header["alg"] == "ES256" and "crit" not in header and key_named(header["kid"])
        if not key or not signed(key, head + "." + body, signature):
            return None
        said, now = json.loads(decode(body)), time.time()
        good = said["iss"] == "anteroom" and said["aud"] == ROOM and said["nbf"] - LEEWAY <= now < said["exp"] + LEEWAY
        return said if good else None
    except (ValueError, KeyError, TypeError):
        return None  # nothing like a pass

class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        said = check(self.headers.get("X-Anteroom-Pass", ""))
        self.send_response(200 if said else 403)
        if done := said and self.path == "/done":
            self.send_header("Anteroom-Command", "revoke")  # the next in line may come
        self.end_headers()
        self.wfile.write(b"come through the waiting room" if not said else b"thank you" if done else b"welcome " + said["sub"].encode())

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Site)
print("listening on 127.0.0.1:%d" % server.server_port, flush=True)
server.serve_forever()
