// A site behind a waiting room that checks the pass of every request. It needs Node 20 and nothing else:
//   node server.mjs http://127.0.0.1:8080/_anteroom/.well-known/jwks.json shop 9000
import {createPublicKey, verify} from "node:crypto";
import {createServer} from "node:http";

const [jwks, room, port] = process.argv.slice(2);
const leeway = 30; // seconds by which the clocks may differ
let keys = new Map(), fetched = -Infinity, fetching;

async function fetchKeys() {
  const answer = await fetch(jwks, {signal: AbortSignal.timeout(5000)});
  if (!answer.ok) throw new Error(`the keys: status ${answer.status}`);
  const set = (await answer.json()).keys.filter(k => k.kty === "EC" && k.crv === "P-256");
  if (set.length) keys = new Map(set.map(k => [k.kid, createPublicKey({key: k, format: "jwk"})]));
}

// A strange name makes it fetch at most every ten seconds. While no node answers the known keys work.
async function keyNamed(kid) {
  const age = performance.now() - fetched;
  if (age > (keys.has(kid) ? 300_000 : 10_000)) {
    fetched = performance.now();
    fetching = fetchKeys().catch(e => console.error(e.message));
  }
  if (!keys.has(kid)) await fetching;
  return keys.get(kid);
}

const decoded = part => JSON.parse(Buffer.from(part, "base64url"));

// What the pass says, or null if it is not good.
async function check(pass) {
  try {
    const [head, body, signature, ...more] = pass.length > 4096 ? [] : pass.split(".");
    const {alg, kid, crit} = decoded(head);
    if (more.length || alg !== "ES256" || crit) return null;
    const key = await keyNamed(kid);
    const signed = Buffer.from(`${head}.${body}`), dsaEncoding = "ieee-p1363";
    if (!key || !verify("sha256", signed, {key, dsaEncoding}, Buffer.from(signature, "base64url"))) return null;
    const said = decoded(body), now = Date.now() / 1000;
    const good = said.iss === "anteroom" && said.aud === room && said.nbf - leeway <= now && now < said.exp + leeway;
    return good ? said : null;
  } catch {
    return null; // no pass, or nothing like one
  }
}

const server = createServer(async (request, response) => {
  const said = await check(request.headers["x-anteroom-pass"] ?? "");
  response.setHeader("Cache-Control", "no-store");
  if (!said) return response.writeHead(403).end("come through the waiting room\n");
  if (request.url !== "/done") return response.end(`welcome ${said.sub}, in line since ${new Date(said.joined_at * 1000).toISOString()}\n`);
  response.setHeader("Anteroom-Command", "revoke"); // the next in line may come
  response.end("thank you\n");
});
server.listen(port, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
