// Compares a dashboard with Grafana's own types.
//
//     node grafana_schema.cjs FOLDER DASHBOARD.json
//
// FOLDER has the packages of tools.py in node_modules. Prints each difference. The exit status is 1 if there is one.

const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

const [folder, file] = process.argv.slice(2).map((argument) => path.resolve(argument));
const load = createRequire(path.join(folder, "package.json"));
const { createGenerator } = load("ts-json-schema-generator");
const Ajv = load("ajv");

// Grafana's folder for each type of panel.
const PANELS = { heatmap: "heatmap", "state-timeline": "statetimeline", table: "table", timeseries: "timeseries" };

/** Writes a file that names Grafana's types, and returns its path. */
function writeTypes() {
  const raw = "./node_modules/@grafana/schema/dist/types/raw";
  // The generator does not know `import("...").Type`, and two types may not have the same name.
  const lines = [`import * as dashboard from "${raw}/dashboard/x/types.gen";`];
  lines.push("export type WholeDashboard = dashboard.Dashboard;");
  for (const name of Object.values(PANELS)) {
    lines.push(`import * as ${name} from "${raw}/composable/${name}/panelcfg/x/types.gen";`);
    lines.push(...["Options", "FieldConfig"].map((type) => `export type ${name}_${type} = ${name}.${type};`));
  }
  const file = path.join(folder, "types.ts");
  fs.writeFileSync(file, lines.join("\n"));
  fs.writeFileSync(path.join(folder, "tsconfig.json"), '{"compilerOptions": {"moduleResolution": "node", "strict": true}}');
  return file;
}

const types = writeTypes();

/** Returns a function that lists the differences between a value and a type. */
function differences(type) {
  const options = { path: types, tsconfig: path.join(folder, "tsconfig.json"), type, skipTypeCheck: true };
  const schema = createGenerator({ ...options, additionalProperties: false }).createSchema(type);
  // The generator adds keywords of its own, which the strict mode rejects.
  const validate = new Ajv.default({ strict: false, allErrors: true }).compile(schema);
  const text = (error) => `${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`;
  return (value) => (validate(value) ? [] : validate.errors.map(text));
}

const dashboard = JSON.parse(fs.readFileSync(file, "utf8"));
const found = differences("WholeDashboard")(dashboard);
for (const [type, name] of Object.entries(PANELS)) {
  const [options, custom] = [differences(`${name}_Options`), differences(`${name}_FieldConfig`)];
  for (const panel of dashboard.panels.filter((panel) => panel.type === type)) {
    const wrong = [...options(panel.options), ...custom(panel.fieldConfig.defaults.custom ?? {})];
    found.push(...wrong.map((one) => `${panel.title}: ${one}`));
  }
}
if (found.length > 0) {
  console.error(found.join("\n"));
  process.exitCode = 1;
}
