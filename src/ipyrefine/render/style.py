"""The style sheet, scoped under ``.ipyrefine``.

Text takes its colour from the page and surfaces are translucent, so any theme works. Accents are
mixed towards the text colour, which keeps their contrast on light and dark.
"""

_PANE_LINES = 40

_VARIABLES = """
.ipyrefine{
--rf-line:var(--jp-border-color2,var(--vscode-panel-border,rgba(128,128,128,.35)));
--rf-surface:rgba(128,128,128,.07);
--rf-accent:var(--jp-brand-color1,var(--vscode-textLink-foreground,#1f6feb));
--rf-good:color-mix(in srgb,#1f9d4d 72%,currentColor);
--rf-warn:color-mix(in srgb,#c27803 72%,currentColor);
--rf-bad:color-mix(in srgb,#d93a3a 76%,currentColor);
--rf-quiet:color-mix(in srgb,currentColor 68%,transparent);
--rf-mono:var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,monospace);
--rf-key:#7a2fa8;--rf-str:#a3360f;--rf-num:#0b6b3a;--rf-def:#0550ae;--rf-com:#5f6b76}
@media (prefers-color-scheme:dark){.ipyrefine{
--rf-accent:var(--jp-brand-color1,var(--vscode-textLink-foreground,#6cb0ff));
--rf-key:#d2a8ff;--rf-str:#ffa28b;--rf-num:#7ee2a8;--rf-def:#79c0ff;--rf-com:#9aa4af}}
"""

_LAYOUT = """
.ipyrefine{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;
line-height:1.5;color:var(--jp-ui-font-color1,inherit);max-width:62rem;padding:.25rem .1rem;
overflow-wrap:anywhere;text-align:left}
.ipyrefine *{box-sizing:border-box}
.ipyrefine p{margin:.35em 0}
.ipyrefine ul{list-style:none;margin:.25em 0;padding:0}
.ipyrefine li{margin:0}
.ipyrefine .rf-summary{display:flex;flex-wrap:wrap;gap:.15em .55em;align-items:baseline;
font-variant-numeric:tabular-nums}
.ipyrefine .rf-message{font-size:14px}
.ipyrefine .rf-head{margin:1em 0 .25em;font-weight:600;font-size:12px;letter-spacing:.01em;
color:var(--rf-quiet)}
.ipyrefine .rf-quiet{color:var(--rf-quiet)}
.ipyrefine .rf-note{border-left:3px solid var(--rf-warn);padding:.3em .7em;margin:.5em 0;
background:rgba(210,150,30,.1);border-radius:0 4px 4px 0}
.ipyrefine .rf-flaw{border-left-color:var(--rf-bad);background:rgba(217,58,58,.1)}
.ipyrefine .rf-scores{display:block;max-width:100%;height:auto;margin:.3em 0}
"""

_LABELS = """
.ipyrefine .rf-badge,.ipyrefine .rf-chip{display:inline-block;white-space:nowrap;
border-radius:1em;padding:0 .6em;border:1px solid currentColor;font-weight:600}
.ipyrefine .rf-chip{font-size:11.5px;padding:0 .5em;font-weight:500}
.ipyrefine .rf-good{color:var(--rf-good);background:rgba(31,157,77,.1)}
.ipyrefine .rf-warn{color:var(--rf-warn);background:rgba(210,150,30,.12)}
.ipyrefine .rf-bad{color:var(--rf-bad);background:rgba(217,58,58,.1)}
.ipyrefine .rf-chip.rf-quiet,.ipyrefine .rf-badge.rf-quiet{color:var(--rf-quiet)}
.ipyrefine .rf-chip.rf-open{border-style:dashed}
.ipyrefine .rf-opinion,.ipyrefine .rf-yours{color:var(--rf-accent);background:none}
.ipyrefine .rf-yours{border-style:double;border-width:3px}
.ipyrefine .rf-badge.rf-hollow{background:none;border-style:dashed;font-weight:500}
.ipyrefine .rf-star{color:var(--rf-accent);font-weight:600;white-space:nowrap}
"""

_DETAILS = """
.ipyrefine details{border:1px solid var(--rf-line);border-radius:6px;margin:.5em 0}
.ipyrefine summary{cursor:pointer;padding:.35em .7em;border-radius:6px;
font-variant-numeric:tabular-nums}
.ipyrefine summary:hover{background:var(--rf-surface)}
.ipyrefine summary:focus-visible,.ipyrefine pre:focus-visible{outline:2px solid var(--rf-accent);
outline-offset:1px}
.ipyrefine .rf-iteration>summary{display:list-item}
.ipyrefine .rf-iteration>.rf-body{padding:.1em .8em .7em;border-top:1px solid var(--rf-line)}
.ipyrefine .rf-record>summary{color:var(--rf-quiet);font-size:12px}
.ipyrefine .rf-record>.rf-body{padding:.1em .8em .7em}
.ipyrefine .rf-more{border:0;margin:.15em 0}
.ipyrefine .rf-more>summary{padding:.1em .25em;margin-left:-.25em;color:var(--rf-quiet);
font-size:12px;width:fit-content}
"""

_TEXT = """
.ipyrefine :is(pre.rf-text,.rf-sides,.rf-prose){background:var(--rf-surface);color:inherit;
border:1px solid var(--rf-line);border-radius:5px;padding:.55em .75em;margin:.3em 0;
max-height:28rem;overflow:auto}
.ipyrefine pre.rf-text{font-family:var(--rf-mono);font-size:12.5px;line-height:1.45;
white-space:pre;overflow-wrap:normal;tab-size:4}
.ipyrefine .rf-long{content-visibility:auto;contain-intrinsic-size:auto 28rem}
.ipyrefine pre.rf-tree{width:fit-content;max-width:100%;border:0;padding:.3em .8em}
.ipyrefine pre.rf-wrap{white-space:pre-wrap;overflow-wrap:anywhere}
.ipyrefine.ipyrefine pre{word-break:normal}
.ipyrefine.ipyrefine pre code{font:inherit;background:none;color:inherit;padding:0;
white-space:inherit}
.ipyrefine .rf-prose{white-space:pre-wrap;font-size:14px;line-height:1.6;
font-family:var(--jp-content-font-family,inherit)}
.ipyrefine ins,.ipyrefine del{color:inherit;text-decoration-thickness:1px;border-radius:2px}
.ipyrefine ins{background:rgba(31,157,77,.17);text-decoration:none}
.ipyrefine del{background:rgba(217,58,58,.15);text-decoration:none}
.ipyrefine .rf-prose del{text-decoration:line-through}
.ipyrefine .rf-prose ins{text-decoration:underline}
.ipyrefine ins small,.ipyrefine del small{font-size:.8em;opacity:.75;padding:0 .1em;
display:inline-block;user-select:none}
.ipyrefine pre.rf-diff code{display:inline-block;min-width:100%}
.ipyrefine pre.rf-diff ins,.ipyrefine pre.rf-diff del{display:inline-block;min-width:100%}
.ipyrefine .rf-columns{display:grid;grid-template-columns:1fr 1fr;gap:.6em}
.ipyrefine .rf-sides{padding:0;font-size:12.5px}
.ipyrefine .rf-sides table{width:100%;table-layout:fixed;border-collapse:collapse}
.ipyrefine.ipyrefine .rf-sides td{padding:0 .4em;vertical-align:top;border:0;text-align:left}
.ipyrefine.ipyrefine .rf-sides pre{margin:0;padding:0;background:none;border:0;
font-family:var(--rf-mono);white-space:pre-wrap;overflow-wrap:anywhere}
.ipyrefine .rf-sides ins,.ipyrefine .rf-sides del{display:block}
.ipyrefine .rf-sides td+td{border-left:1px solid var(--rf-line)}
@media (max-width:700px){.ipyrefine .rf-columns{grid-template-columns:1fr}}
.ipyrefine mark{background:rgba(210,150,30,.35);color:inherit;border-radius:2px}
.ipyrefine .rf-wide{overflow-x:auto}
.ipyrefine.ipyrefine .rf-wide :is(th,td){white-space:nowrap}
.ipyrefine .rf-table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.ipyrefine.ipyrefine .rf-table :is(th,td){padding:.15em .7em;text-align:right;border:0;
border-bottom:1px solid var(--rf-line)}
.ipyrefine.ipyrefine .rf-table th:first-child{text-align:left}
.ipyrefine .rf-held{position:relative}
.ipyrefine .rf-copy{display:var(--rf-copy,none);position:absolute;top:.4em;right:.6em;
font-size:12px;padding:.1em .6em;border:1px solid var(--rf-line);border-radius:4px;cursor:pointer;
background:var(--jp-layout-color1,Canvas);color:inherit}
.ipyrefine .rf-tail{display:flex;flex-direction:column-reverse}
"""

_ROWS = """
.ipyrefine .rf-rows>li{padding:.4em 0;border-top:1px solid var(--rf-line)}
.ipyrefine .rf-rows>li:first-child{border-top:0}
.ipyrefine .rf-line{display:flex;flex-wrap:wrap;gap:.2em .5em;align-items:baseline}
.ipyrefine .rf-rows p{margin:.2em 0}
.ipyrefine .rf-flat{flex-wrap:nowrap}
.ipyrefine .rf-done{color:var(--rf-quiet)}
.ipyrefine .rf-quote{border-left:3px solid var(--rf-line);margin:.25em 0;padding:.05em .7em;
max-height:9rem;overflow:auto;color:inherit;background:none;font-size:12.5px}
.ipyrefine pre.rf-quote{font-family:var(--rf-mono);white-space:pre-wrap;overflow-wrap:anywhere}
.ipyrefine .rf-meter{display:inline-block;width:7em;max-width:30vw;height:.5em;
border-radius:1em;background:rgba(128,128,128,.25);overflow:hidden;align-self:center}
.ipyrefine .rf-meter>span{display:block;height:100%;background:var(--rf-accent)}
.ipyrefine .rf-number{font-variant-numeric:tabular-nums;font-weight:600}
@media (max-width:480px){.ipyrefine .rf-iteration>.rf-body{padding:.1em .5em .5em}}
@media print{.ipyrefine pre.rf-text,.ipyrefine .rf-prose{max-height:none;white-space:pre-wrap}}
"""


def _token(selectors: str, variable: str, fallback: str) -> str:
    """Return the rule for a kind of token: the front-end's own colour, else ours."""
    scoped = ",".join(f".ipyrefine .rf-t-{name}" for name in selectors.split())
    return f"{scoped}{{color:var(--jp-mirror-editor-{variable}-color,var({fallback}))}}"


# Hovering over a quote opens its context below it, without moving what follows.
_PLACE = """
.ipyrefine .rf-place{position:relative}
.ipyrefine .rf-quoted:hover .rf-more:not([open])::details-content{content-visibility:visible;
position:absolute;left:0;right:0;top:100%;z-index:3;padding:0 .5em;border-radius:6px;
border:1px solid var(--rf-line);box-shadow:0 4px 14px rgba(0,0,0,.22);
background:var(--jp-layout-color1,var(--vscode-editor-background,Canvas))}
"""

_TOKENS = "\n".join(
    (
        _token("k kc kd kn kp kr kt ow", "keyword", "--rf-key"),
        _token("s s1 s2 sa sb sc sd se sh si sr ss sx", "string", "--rf-str"),
        _token("m mb mf mh mi mo il", "number", "--rf-num"),
        _token("nf nc fm", "def", "--rf-def"),
        _token("nb bp", "builtin", "--rf-def"),
        _token("nd", "meta", "--rf-num"),
        _token("nt", "tag", "--rf-def"),
        _token("c c1 ch cm cp cs", "comment", "--rf-com"),
    )
)

STYLE = "".join((_VARIABLES, _LAYOUT, _LABELS, _DETAILS, _TEXT, _ROWS, _PLACE, _TOKENS)).strip()


def pane_class(text: str) -> str:
    """Return the extra class of a pane that a long text fills, so it is drawn only in view."""
    return " rf-long" if text.count("\n") > _PANE_LINES else ""
