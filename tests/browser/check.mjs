// Opens pages in headless Chromium and prints what is wrong with them.
//
//     node check.mjs PACKAGES CHROMIUM SCREENSHOTS < PAGES
//
// PACKAGES is the folder of puppeteer-core and axe-core. PAGES is a JSON object: name -> file. The output is a JSON object:
// name -> list of complaints.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [packages, chromium, screenshots] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// A small phone, a tablet, and a desktop.
const WIDTHS = [360, 768, 1440];
const SCHEMES = ["light", "dark"];
// The width of A4 paper without margins, at 96 pixels per inch.
const PAPER = 718;
// Taller screenshots are hard to look at. The README shows the beginning of a page.
const TALLEST = { picture: 1000, others: 6000 };

/** Runs in the page. Returns complaints about texts that overlap, are cut, or leave the page. */
function layoutComplaints() {
  const complaints = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    complaints.push(`the page is ${root.scrollWidth} pixels wide on a screen of ${root.clientWidth}`);
  }
  const shown = (text) => JSON.stringify(text.trim().slice(0, 40));
  const scrolls = (style) => /auto|scroll/.test(style.overflowX);
  // Rounding moves edges by up to a pixel.
  const SLACK = 1;
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("title, desc, style") || !parent.checkVisibility()) continue;
    let rects = [];
    if (parent instanceof SVGElement) {
      rects = [parent.getBoundingClientRect()];
      const frame = parent.ownerSVGElement.getBoundingClientRect();
      const [rect] = rects;
      if (rect.left < frame.left - SLACK || rect.right > frame.right + SLACK || rect.bottom > frame.bottom + SLACK) {
        complaints.push(`${shown(node.data)} leaves its picture`);
      }
    } else {
      const range = document.createRange();
      range.selectNodeContents(node);
      rects = [...range.getClientRects()];
    }
    // Text in a table that scrolls may be outside of the screen, but only there.
    let region = null;
    for (let at = parent; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (scrolls(style)) region ??= at.getBoundingClientRect();
      else if (style.overflowX === "hidden" && at.scrollWidth > at.clientWidth + SLACK) {
        complaints.push(`${shown(node.data)} is cut`);
      }
    }
    for (const rect of rects) {
      if (rect.width < SLACK || rect.height < SLACK) continue;
      if (region && (rect.right <= region.left || rect.left >= region.right)) continue;
      if (!region && (rect.left < -SLACK || rect.right > root.clientWidth + SLACK)) {
        complaints.push(`${shown(node.data)} leaves the page`);
      }
      texts.push({ node, rect });
    }
  }
  texts.sort((a, b) => a.rect.top - b.rect.top);
  for (const [i, one] of texts.entries()) {
    for (const other of texts.slice(i + 1)) {
      if (other.rect.top >= one.rect.bottom) break;
      if (other.node === one.node) continue;
      const width = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
      const height = one.rect.bottom - other.rect.top;
      // The boxes of two lines touch if the lines are close. Their letters do not, up to a quarter of the height.
      if (width > SLACK && height > Math.min(one.rect.height, other.rect.height) / 4) {
        complaints.push(`${shown(one.node.data)} overlaps ${shown(other.node.data)}`);
      }
    }
  }
  return complaints;
}

/** Returns the serious and critical problems that axe finds. */
async function accessibilityComplaints(page) {
  // The policy of the page does not apply to code from the DevTools protocol.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
  const severe = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  return severe.map(({ id, help, nodes }) => `axe: ${id}: ${help}: ${nodes[0].html.slice(0, 120)} (${nodes.length} in all)`);
}

async function complaintsOf(browser, name, file) {
  const complaints = [];
  const url = pathToFileURL(file).href;
  const page = await browser.newPage();
  page.on("console", (message) => complaints.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => request.url() === url || complaints.push(`request: ${request.url()}`));
  for (const scheme of SCHEMES) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const width of WIDTHS) {
      const found = [];
      await page.setViewport({ width, height: 900 });
      await page.goto(url);
      found.push(...(await page.evaluate(layoutComplaints)));
      const height = Math.min(TALLEST[name] ?? TALLEST.others, await page.evaluate(() => document.documentElement.scrollHeight));
      const path = `${screenshots}/${name}-${width}-${scheme}.png`;
      await page.screenshot({ path, clip: { x: 0, y: 0, width, height }, captureBeyondViewport: true });
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
      found.push(...(await page.evaluate(layoutComplaints)));
      // axe is slow. Colors depend on the scheme, and sizes on the width, so these two cases find all problems.
      if (scheme === (width === WIDTHS[0] ? "light" : width === WIDTHS.at(-1) && "dark")) found.push(...(await accessibilityComplaints(page)));
      complaints.push(...new Set(found.map((text) => `${width} ${scheme}: ${text}`)));
    }
  }
  await page.emulateMediaType("print");
  await page.setViewport({ width: PAPER, height: 1000 });
  await page.goto(url);
  complaints.push(...(await page.evaluate(layoutComplaints)).map((text) => `paper: ${text}`));
  const folded = await page.evaluate(() =>
    [...document.querySelectorAll("details > :not(summary)")].filter((part) => part.getClientRects().length === 0 || !part.checkVisibility({ contentVisibilityAuto: true })).length,
  );
  if (folded) complaints.push(`paper: ${folded} folded parts are missing`);
  await page.close();
  return complaints;
}

const pages = JSON.parse(readFileSync(0, "utf8"));
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
const results = {};
for (const [name, file] of Object.entries(pages)) results[name] = await complaintsOf(browser, name, file);
await browser.close();
console.log(JSON.stringify(results));
