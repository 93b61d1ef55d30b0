// How the rooms were: what the node remembers, and what was heard since.

const most = 900; // points of a room: a quarter of an hour at one a second

const point = (at, r, limit, rate) => ({
  at: Date.parse(at) / 1e3, queued: r.queued, inside: r.active + r.called, limit, rate,
  flow: r.admitted_per_minute, wait: r.queued ? r.estimated_wait_seconds : 0,
});

export class Memory {
  #rooms = new Map();
  #before = new Map(); // what the node remembers of a room

  add({at, rooms}) {
    for (const r of rooms) {
      const of = this.#rooms.get(r.name) || [];
      of.push(point(at, r, r.why.total_active_users, r.why.new_users_per_minute));
      if (of.length > most) of.shift();
      this.#rooms.set(r.name, of);
    }
  }

  // After a pause there is a gap, which the node can fill.
  forget() {
    this.#rooms.clear();
    this.#before.clear();
  }

  async load(name) {
    const answer = await fetch(`/v1/rooms/${encodeURIComponent(name)}/history`);
    if (!answer.ok) return;
    const {samples} = await answer.json();
    this.#before.set(name, samples.map(s => point(s.at, s, s.total_active_users, null)));
  }

  loaded(name) { return this.#before.has(name) }

  // The points of the last seconds, the oldest first.
  of(name, seconds) {
    const live = this.#rooms.get(name) || [], first = live[0]?.at ?? Infinity;
    const all = [...(this.#before.get(name) || []).filter(p => p.at < first - 1), ...live];
    const from = (all.at(-1)?.at ?? 0) - seconds;
    return all.filter(p => p.at >= from);
  }
}
