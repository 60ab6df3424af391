// Imports the pure parts of ipyrefine in Pyodide and replays a recording there, as JupyterLite
// would: `node replay.mjs FOLDER`, which holds wheels and greeting.json.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadPyodide } from "pyodide";

const folder = process.argv[2];
const bytes = (name) => new Uint8Array(readFileSync(join(folder, name)));
const pyodide = await loadPyodide();
for (const name of readdirSync(folder).filter((name) => name.endsWith(".whl"))) {
  pyodide.unpackArchive(bytes(name), "wheel");
}
pyodide.FS.writeFile("/tmp/greeting.json", bytes("greeting.json"));
pyodide.FS.writeFile("greeting.py", bytes("greeting.py"));
await pyodide.runPythonAsync(new TextDecoder().decode(bytes("replay.py")));
