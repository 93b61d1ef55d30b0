// What another limit or rate does to the wait, as far as can be told from how the
// room is now.

// leaves is how many of those inside go within a minute, as a part of them. While the
// room is full, or nearly so between two waves, it is what the estimate for who joins now
// comes from. Else a visit is taken for a session long, which is too long if anything.
const leaves = r => {
  const inside = r.active + r.called, limit = r.why.total_active_users, wait = r.estimated_wait_seconds;
  const ahead = r.queued - Math.max(0, limit - inside);
  return inside + Math.max(1, limit / 10) >= limit && wait > 0 && ahead > 0 ? ahead / wait * 60 / limit : 60 / (r.session_seconds || 300);
};

// predict says in seconds how long nobody is called (drain), and how long somebody
// who joins now waits; Infinity: for ever.
export const predict = (r, limit, rate) => {
  const inside = r.active + r.called, part = leaves(r);
  if (limit == 0) return {drain: inside ? Infinity : 0, wait: Infinity, flow: 0};
  const drain = inside > limit ? Math.log(inside / limit) / part * 60 : 0;
  const flow = Math.min(rate || Infinity, part * limit); // a minute, once it is full
  const atOnce = Math.max(0, limit - inside); // they go in as fast as the rate allows
  const rest = Math.max(0, r.queued - atOnce);
  const wait = drain + (rest ? rest / flow * 60 : 0) + (rate ? Math.min(r.queued, atOnce) / rate * 60 : 0);
  return {drain, wait, flow};
};
