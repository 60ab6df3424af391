/*
 * The page of ours in the application's settings, whose fields `schemas/ipyrefine/cells.json` lists.
 *
 * The kernel takes them as defaults (`Refine.take_settings` in notebook/magic.py).
 */
const NAMES = ["model", "critic", "server", "share", "context", "revisions"];

let settings = null;

/** Follow the settings of a plugin from now on; without them, the kernel's own hold. */
export async function follow(registry, plugin) {
  try {
    settings = await registry.load(plugin);
  } catch (error) {
    console.warn("ipyrefine: the settings could not be read", error);
  }
}

export function read() {
  const now = settings ? settings.composite : {};
  return Object.fromEntries(NAMES.map((name) => [name, now[name] === "" ? null : (now[name] ?? null)]));
}

/** Keep some settings, for later kernels too; return whether that worked. */
export async function keep(values) {
  try {
    for (const name of NAMES.filter((one) => one in values)) await settings.set(name, values[name]);
    return true;
  } catch (error) {
    console.warn("ipyrefine: the settings could not be kept", error);
    return false;
  }
}
