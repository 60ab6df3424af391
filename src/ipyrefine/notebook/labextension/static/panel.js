/*
 * What a panel's buttons need of the page: keys that press them, and the clipboard.
 */

/**
 * Press a button of the panel that has the focus by its key.
 *
 * Caught before the application sees it, whose own single-key shortcuts would change the notebook.
 */
function pressByKey(event) {
  const panel = event.target.closest && event.target.closest(".rf-panel");
  const typing = event.target.closest && event.target.closest("input, textarea, select");
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (!panel || typing || !plain || !/^[acrpnes?]$/.test(event.key)) {
    return;
  }
  const name = event.key === "?" ? "help" : event.key;
  const button = panel.querySelector(`button.rf-key-${name}`);
  if (button && !button.disabled) {
    event.preventDefault();
    event.stopPropagation();
    button.click();
  }
}

/** Put a text on the clipboard, which a page that is not served securely is not given. */
async function copy(text) {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text);
  }
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** Copy the text that a copy button of a panel stands beside. */
async function copyBeside(event) {
  const button = event.target.closest && event.target.closest(".ipyrefine button.rf-copy");
  if (!button) {
    return;
  }
  try {
    await copy(button.parentElement.querySelector(".rf-text").innerText);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

/** Serve every panel on the page. */
export function servePanels() {
  document.addEventListener("keydown", pressByKey, true);
  document.addEventListener("click", copyBeside);
  document.documentElement.style.setProperty("--rf-copy", "inline-block");
}
