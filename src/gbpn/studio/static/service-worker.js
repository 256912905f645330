// Keeps the page for visits without a network. `gbpn studio --static` fills in build and files; the engine keeps its large
// files itself (src/engine/downloads.ts). A new build is fetched whole and serves once no page of the old one is open.

const BUILD = "of no build";
const FILES = [/* files */];
const PREFIX = `gbpn-page ${self.registration.scope} `;
const CACHE = PREFIX + BUILD;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES.map((file) => new Request(file, { cache: "no-cache" })))));
});

self.addEventListener("activate", (event) => {
  const forget = async () => {
    const names = await caches.keys();
    await Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(forget());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || !url.href.startsWith(self.registration.scope)) return;
  const path = url.href.slice(self.registration.scope.length).split(/[?#]/)[0] || "index.html";
  if (!FILES.includes(path)) return;
  const kept = async () => (await (await caches.open(CACHE)).match(path)) ?? fetch(request);
  event.respondWith(kept());
});
