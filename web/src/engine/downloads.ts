// Files of the site, each with its checksum: downloaded once with progress, kept in the browser's cache.

export interface SiteFile {
  /** Beside site.json. */
  path: string;
  /** As it lies there, which may be packed (gzip) … */
  bytes: number;
  /** … and of what is inside. */
  sha256: string;
}

/** site.json, written by `gbpn studio --static`. */
export interface Site {
  version: string; model: string; weights: string; licence: string; scenes: string[];
  core: SiteFile; runtime: SiteFile; script: string; manifest: SiteFile; networks: SiteFile[]; pictures: Record<string, SiteFile>;
}

/** What a site has. */
export async function readSite(base: string): Promise<Site> {
  const content = await received(new URL("site.json", base).href, true, () => undefined);
  return JSON.parse(new TextDecoder().decode(content)) as Site;
}

export type Told = (done: number, total: number) => void;
const CACHE = "gbpn-networks";
const ATTEMPTS = 3;
const PAUSE = 800;

/** What the cache could not take, for those who want to say so. */
export class Downloads {
  /** Whether the browser refused to keep a file: its storage is full, or switched off. */
  notKept = false;

  constructor(private readonly base: string) {}

  /** Several files, in parallel; `told` hears of bytes that came from the network. */
  async all(files: readonly SiteFile[], told: Told): Promise<Uint8Array<ArrayBuffer>[]> {
    const done = new Map<SiteFile, number>();
    const wanted: SiteFile[] = [];
    const say = (): void => {
      const total = wanted.reduce((sum, file) => sum + file.bytes, 0);
      if (total) told(Math.min([...done.values()].reduce((sum, bytes) => sum + bytes, 0), total), total);
    };
    const cache = await opened();
    const found = await Promise.all(files.map(async (file) => {
      const there = await kept(cache, this.address(file), file);
      if (there) return there;
      wanted.push(file);
      const content = await this.download(file, (bytes) => { done.set(file, bytes); say(); });
      await this.keep(cache, file, content);
      return content;
    }));
    if (cache) await forgetOthers(cache, files.map((file) => this.address(file)));
    return found;
  }

  /** One small file, not kept here: the service worker does that. */
  async one(file: SiteFile): Promise<Uint8Array<ArrayBuffer>> {
    return this.download(file, () => undefined);
  }

  private address(file: SiteFile): string {
    return `${new URL(file.path, this.base).href}?sha256=${file.sha256}`;
  }

  private async download(file: SiteFile, told: (bytes: number) => void): Promise<Uint8Array<ArrayBuffer>> {
    for (let attempt = 1; ; attempt++) {
      try {
        const content = await unpacked(await received(new URL(file.path, this.base).href, attempt > 1, told));
        await requireChecksum(content, file);
        return content;
      } catch (error) {
        if (attempt === ATTEMPTS || error instanceof NotThere) throw error;
        await new Promise((done) => setTimeout(done, PAUSE * attempt));
      }
    }
  }

  private async keep(cache: Cache | null, file: SiteFile, content: Uint8Array<ArrayBuffer>): Promise<void> {
    try {
      await cache?.put(this.address(file), new Response(content));
    } catch {
      this.notKept = true;
    }
  }
}

/** The network failed: what has come is kept, and it can be tried again. */
export class CutOff extends Error {}
/** The site itself is not whole: trying again does not help. */
class NotThere extends Error {}

async function opened(): Promise<Cache | null> {
  try {
    return await caches.open(CACHE);
  } catch {
    return null; // no secure context, or storage switched off
  }
}

async function kept(cache: Cache | null, address: string, file: SiteFile): Promise<Uint8Array<ArrayBuffer> | null> {
  const response = await cache?.match(address);
  if (!response) return null;
  try {
    const content = new Uint8Array(await response.arrayBuffer());
    await requireChecksum(content, file);
    return content;
  } catch {
    await cache?.delete(address); // damaged: once more from the network
    return null;
  }
}

async function forgetOthers(cache: Cache, addresses: readonly string[]): Promise<void> {
  const folder = (address: string): string => address.slice(0, address.lastIndexOf("/"));
  const own = new Set(addresses.map(folder));
  for (const request of await cache.keys()) {
    if (own.has(folder(request.url)) && !addresses.includes(request.url)) await cache.delete(request);
  }
}

/** Once more (`anew`) it is not asked of the browser's own cache, which may hold what was wrong. */
async function received(address: string, anew: boolean, told: (bytes: number) => void): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    const response = await fetch(address, { cache: anew ? "reload" : "default" });
    if (response.status === 404) throw new NotThere(`${address} is not there: the site is not whole`);
    if (!response.ok || !response.body) throw new CutOff(`${address} answered ${response.status}`);
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      bytes += value.length;
      told(bytes);
    }
  } catch (error) {
    throw error instanceof TypeError ? new CutOff(error.message) : error; // what fetch and streams throw for networks
  }
  const out = new Uint8Array(bytes);
  let start = 0;
  for (const part of parts) {
    out.set(part, start);
    start += part.length;
  }
  return out;
}

/** What is inside of a packed file; some hosts unpack it on the way. */
export async function unpacked(content: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  if (content[0] !== 0x1f || content[1] !== 0x8b) return content;
  return through(new DecompressionStream("gzip"), content);
}

/** All that a stream makes of some bytes. */
export async function through(
  stream: DecompressionStream | CompressionStream, content: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Response(new Blob([content]).stream().pipeThrough(stream)).arrayBuffer());
}

/** Throw unless a file is the one that is wanted; where pages may not compute checksums (http), nothing is said. */
async function requireChecksum(content: Uint8Array<ArrayBuffer>, file: SiteFile): Promise<void> {
  if (typeof crypto === "undefined" || !crypto.subtle) return;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== file.sha256) throw new Error(`${file.path} did not come as it was published: its checksum differs`);
}
