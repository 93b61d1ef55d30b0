// What is asked of the node beside its stream, for as long as somebody looks.

// asking returns a function that asks for a path, but not more often than every so many
// milliseconds, and calls told with the answer.
export const asking = (path, told, every = 5e3) => {
  let asked = -Infinity;
  const ask = async () => {
    const answer = await fetch(path);
    if (answer.ok) told(await answer.json());
  };
  return () => {
    if (performance.now() - asked < every) return;
    asked = performance.now();
    ask().catch(() => {}); // the next time
  };
};

// waits asks how long those had waited, in each room, who got in within the last minute.
export const waits = told => asking("/v1/waits", ({rooms}) => told(new Map(rooms.map(r => [r.room, r.p50]))));
