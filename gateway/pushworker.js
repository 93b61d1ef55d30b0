// Shows that it is somebody's turn, and brings them to the page. The message says no
// more than that: the words are those of the page that asked for it.
const asked = new URL(location).searchParams;
addEventListener("install", () => skipWaiting());
addEventListener("push", e => {
  e.waitUntil(registration.showNotification(asked.get("text"), {tag: asked.get("tag"), requireInteraction: true}));
});
addEventListener("notificationclick", e => {
  e.notification.close();
  const to = new URL(asked.get("to"), location.origin);
  if (to.origin != location.origin) return;
  e.waitUntil(clients.matchAll({type: "window", includeUncontrolled: true}).then(all => {
    const page = all.find(c => c.url.split("#")[0] == to.href.split("#")[0]);
    return page ? page.focus() : clients.openWindow(to.href);
  }));
});
