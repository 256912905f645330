// Builds the folder of the npm package `gbpn` from these sources and a site that `gbpn studio --static` wrote.
// usage: node pack.mjs SITE FOLDER      then: npm publish FOLDER

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const web = dirname(fileURLToPath(import.meta.url));
const [site, folder] = process.argv.slice(2).map((place) => resolve(place));
if (!folder) throw new Error("usage: node pack.mjs SITE FOLDER");
const run = (...words) => execFileSync("npx", ["--no-install", ...words], { cwd: web, stdio: "inherit" });
const index = JSON.parse(readFileSync(join(site, "site.json"), "utf8"));

rmSync(folder, { recursive: true, force: true });
run("vite", "build", "--config", "vite.package.config.ts", "--outDir", folder, "--logLevel", "error");
run("tsc", "--project", "tsconfig.package.json", "--outDir", join(folder, "types"));
mkdirSync(join(folder, "assets"));
for (const part of ["engine", "networks", "licences.txt", "weights.md"]) cpSync(join(site, part), join(folder, "assets", part), { recursive: true });
writeFileSync(join(folder, "assets", "site.json"), JSON.stringify({ ...index, scenes: [], pictures: {} }, null, 1) + "\n");
cpSync(join(web, "package", "README.md"), join(folder, "README.md"));
cpSync(join(web, "..", "LICENSE"), join(folder, "LICENSE"));
const entry = (name) => ({ types: `./types/package/${name}.d.ts`, default: `./${name}.js` });
writeFileSync(join(folder, "package.json"), JSON.stringify({
  name: "gbpn",
  version: index.version,
  description: "Metric depth with its uncertainty from a photo and a few measured points, in the browser",
  license: "SEE LICENSE IN LICENSE",
  type: "module",
  sideEffects: ["./element.js", "./worker.js"],
  exports: { ".": entry("index"), "./element": entry("element"), "./worker.js": "./worker.js", "./assets/*": "./assets/*" },
}, null, 2) + "\n");
