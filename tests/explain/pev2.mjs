// Reads plans with pev2's own parser, and computes what pev2 shows.
//
//     node pev2.mjs FOLDER < SOURCES > RESULTS
//
// FOLDER is the npm package pev2. SOURCES is a JSON list of texts. RESULTS has for each of them the nodes in the order of the
// printed tree, or the error.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const dist = path.join(process.argv[2], "dist");
const source = fs.readFileSync(path.join(dist, "pev2.es.js"), "utf8");
// The package exports only the component. Its parser is an object within the module, and its name is not fixed.
const parser = source.match(/\b(\w+)\.fromSource\(/)[1];
const module = path.join(dist, "with-parser.mjs");
fs.writeFileSync(module, `${source}\nexport { ${parser} as parser };\n`);
const { parser: pev2 } = await import(pathToFileURL(module));

function nodes(node) {
  const own = ["Node Type", "Actual Startup Time", "Actual Total Time", "Actual Loops", "Subplan Name", "Total Cost"].map((key) => node[key] ?? null);
  const workers = (node.Workers ?? []).map((worker) => worker["Actual Total Time"] ?? null);
  return [{ own, workers }, ...(node.Plans ?? []).flatMap(nodes)];
}

function read(text) {
  try {
    const content = pev2.fromSource(text);
    const result = { nodes: nodes(content.Plan), execution: content["Execution Time"], correction: content["Time Correction"] };
    pev2.createPlan("", content, "");
    return result;
  } catch (error) {
    return { error: String(error) };
  }
}

const sources = JSON.parse(fs.readFileSync(0, "utf8"));
console.log(JSON.stringify(sources.map(read)));
