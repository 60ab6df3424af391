"""The style sheet, scoped under ``.ipyrefine``.

Text takes its colour from the page and surfaces are translucent, so any theme works. Accents are
mixed towards the text colour, which keeps their contrast on light and dark.
"""

_VARIABLES = """
.ipyrefine{
--rf-line:color-mix(in srgb,currentColor 18%,transparent);
--rf-surface:color-mix(in srgb,currentColor 4%,transparent);
--rf-page:var(--jp-layout-color0,var(--vscode-editor-background,Canvas));
--rf-accent:var(--jp-brand-color1,var(--vscode-textLink-foreground,#1f6feb));
--rf-good:color-mix(in srgb,#1f9d4d 72%,currentColor);
--rf-warn:color-mix(in srgb,#b87503 70%,currentColor);
--rf-bad:color-mix(in srgb,#d93a3a 76%,currentColor);
--rf-quiet:color-mix(in srgb,currentColor 70%,transparent);
--rf-mono:var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,monospace);
--rf-key:#7a2fa8;--rf-str:#a3360f;--rf-num:#0b6b3a;--rf-def:#0550ae;--rf-com:#5f6b76}
@media (prefers-color-scheme:dark){.ipyrefine{
--rf-accent:var(--jp-brand-color1,var(--vscode-textLink-foreground,#6cb0ff));
--rf-key:#d2a8ff;--rf-str:#ffa28b;--rf-num:#7ee2a8;--rf-def:#79c0ff;--rf-com:#9aa4af}}
"""

_LAYOUT = """
.ipyrefine{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;
line-height:1.5;color:var(--jp-ui-font-color1,inherit);max-width:60rem;padding:2px 0;
overflow-wrap:anywhere;text-align:left}
.ipyrefine *{box-sizing:border-box}
.ipyrefine .rf{border:1px solid var(--rf-line);border-radius:6px;container-type:inline-size}
.ipyrefine p{margin:.35em 0}
.ipyrefine.ipyrefine :is(ul,ol){list-style:none;margin:.25em 0;padding:0}
.ipyrefine li{margin:0}
.ipyrefine .rf-top{padding:8px 14px;border-bottom:1px solid var(--rf-line);
border-radius:6px 6px 0 0}
.ipyrefine .rf-row{display:flex;align-items:center;gap:6px 10px}
.ipyrefine .rf-row+.rf-row{margin-top:6px}
.ipyrefine .rf-status{flex:1 1 12em;min-width:0;display:flex;align-items:center;gap:4px 10px}
.ipyrefine .rf-basis{min-width:0;line-height:1.35}
.ipyrefine .rf-basis b{font-weight:600}
.ipyrefine .rf-meta{margin-left:auto;font-size:12px;color:var(--rf-quiet);white-space:nowrap;
font-variant-numeric:tabular-nums}
.ipyrefine.ipyrefine .rf-steps{display:flex;flex-wrap:wrap;align-items:center;margin:0;
min-width:0}
.ipyrefine .rf-steps li{display:inline-flex;align-items:center;font-size:12px}
.ipyrefine .rf-steps>li+li::before{content:"";width:14px;height:1px;background:var(--rf-line)}
.ipyrefine .rf-step{display:inline-flex;align-items:center;gap:5px;padding:0 8px;font-size:12px;
border-radius:10px;color:var(--rf-quiet);line-height:1.6}
.ipyrefine .rf-step.rf-on{color:inherit;font-weight:600;background:var(--rf-surface);
box-shadow:inset 0 0 0 1px var(--rf-line)}
.ipyrefine .rf-dot{display:inline-block;width:8px;height:8px;border-radius:50%;
border:1.5px solid currentColor;background:currentColor}
.ipyrefine .rf-dot:is(.rf-opinion,.rf-quiet,.rf-yours){background:none}
.ipyrefine :is(.rf-why,.rf-bar-note){padding:5px 14px;margin:0;
border-bottom:1px solid var(--rf-line)}
.ipyrefine .rf-note{border-left:3px solid var(--rf-warn);padding:4px 12px;margin:0;
background:rgba(210,150,30,.1)}
.ipyrefine .rf-flaw{border-left-color:var(--rf-bad);background:rgba(217,58,58,.1)}
.ipyrefine .rf-empty{padding:0 14px}
.ipyrefine .rf-head{margin:1em 0 .25em;font-weight:600;font-size:12px;color:var(--rf-quiet)}
.ipyrefine .rf-quiet{color:var(--rf-quiet)}
@container (max-width:620px){.ipyrefine .rf-row{flex-wrap:wrap}
.ipyrefine .rf-status{flex-wrap:wrap;flex-basis:100%}}
"""

_LABELS = """
.ipyrefine .rf-badge,.ipyrefine .rf-chip{display:inline-block;white-space:nowrap;
border-radius:12px;padding:1px 10px;font-weight:700;font-size:12px;letter-spacing:.02em}
.ipyrefine .rf-chip{padding:0 9px;font-weight:500;letter-spacing:0;white-space:normal;
border:1px solid var(--rf-line)}
.ipyrefine .rf-badge.rf-good{color:var(--rf-good);background:rgba(31,157,77,.16)}
.ipyrefine .rf-badge.rf-warn{color:var(--rf-warn);background:rgba(210,160,30,.2)}
.ipyrefine .rf-badge.rf-bad{color:var(--rf-bad);background:rgba(217,58,58,.14)}
.ipyrefine .rf-badge:is(.rf-busy,.rf-busy-pill){color:var(--rf-accent);
background:color-mix(in srgb,var(--rf-accent) 14%,transparent)}
.ipyrefine .rf-good{color:var(--rf-good)}
.ipyrefine .rf-warn{color:var(--rf-warn)}
.ipyrefine .rf-bad{color:var(--rf-bad)}
.ipyrefine .rf-chip:is(.rf-good,.rf-opinion){color:inherit}
.ipyrefine .rf-badge.rf-quiet{background:var(--rf-surface);
box-shadow:inset 0 0 0 1px var(--rf-line)}
.ipyrefine .rf-badge.rf-opinion{color:var(--rf-good);box-shadow:inset 0 0 0 1.5px currentColor}
.ipyrefine .rf-badge.rf-hollow{background:none;box-shadow:inset 0 0 0 1.5px currentColor}
.ipyrefine .rf-yours{color:var(--rf-accent)}
.ipyrefine .rf-badge.rf-yours{border:3px double currentColor;padding:0 8px}
.ipyrefine .rf-dot.rf-opinion{color:var(--rf-good)}
.ipyrefine .rf-chip:is(.rf-open,.rf-opinion){border-style:dashed}
.ipyrefine .rf-chip.rf-bad{border-color:currentColor}
.ipyrefine .rf-star{color:var(--rf-accent);font-weight:600;white-space:nowrap}
"""

_DETAILS = """
.ipyrefine details{margin:0}
.ipyrefine summary{cursor:pointer;font-variant-numeric:tabular-nums;border-radius:4px}
.ipyrefine summary:hover{background:var(--rf-surface)}
.ipyrefine :is(summary,pre,button,input,select,textarea,.rf-stream):focus-visible{
outline:2px solid var(--rf-accent);outline-offset:1px}
.ipyrefine .rf-foot{display:flex;flex-wrap:wrap;align-items:baseline;gap:0 14px;padding:4px 14px;
background:var(--rf-surface);border-top:1px solid var(--rf-line);border-radius:0 0 6px 6px;
font-size:12px}
.ipyrefine .rf-foot-fold[open]{flex:1 1 100%;min-width:0;order:1}
.ipyrefine .rf-foot-fold>summary{color:var(--rf-quiet);width:fit-content;padding:1px 0}
.ipyrefine .rf-foot-fold>.rf-body{padding:2px 0 10px;font-size:13px}
.ipyrefine .rf-iteration{border:1px solid var(--rf-line);border-radius:6px;margin:.5em 0;
padding:.25em .7em}
.ipyrefine .rf-more>summary{padding:.1em .25em;margin-left:-.25em;color:var(--rf-quiet);
font-size:12px;width:fit-content}
.ipyrefine .rf-chips{display:flex;flex-wrap:wrap;gap:6px;padding:7px 14px;align-items:flex-start;
border-top:1px solid var(--rf-line)}
.ipyrefine .rf-ev>summary{list-style:none}
.ipyrefine .rf-ev>summary::-webkit-details-marker{display:none}
.ipyrefine .rf-ev>summary::after{content:" ▾";color:var(--rf-quiet)}
.ipyrefine .rf-ev[open]{flex:1 1 100%;min-width:0;order:1}
.ipyrefine .rf-ev-body{padding:4px 0}
.ipyrefine .rf-outputs{display:grid;gap:0 18px;padding:2px 14px 8px;
grid-template-columns:repeat(auto-fit,minmax(min(100%,17rem),1fr))}
.ipyrefine .rf-outputs>div{min-width:0}
.ipyrefine .rf-outputs .rf-head{margin:.6em 0 .2em}
.ipyrefine .rf-outputs>div>:first-child{margin-top:0}
.ipyrefine .rf-side{border-bottom:1px solid var(--rf-line)}
.ipyrefine .rf-side strong{font-weight:600}
.ipyrefine .rf-outputs pre.rf-text{max-height:12rem}
.ipyrefine .rf-figure{margin:.2em 0}
.ipyrefine .rf-figure img{display:block;max-width:100%;height:auto;border-radius:4px;
background:#fff}
"""

_TEXT = """
.ipyrefine .rf-pane{padding:6px 0}
.ipyrefine .rf-whole{border-top:1px solid var(--rf-line);padding:0 0 8px}
.ipyrefine .rf-whole>.rf-head{margin:6px 14px 2px}
.ipyrefine .rf-code{font-family:var(--rf-mono);font-size:12.5px;line-height:1.5;tab-size:4;
margin:0;padding:0;background:none;border:0;color:inherit;white-space:pre-wrap;overflow:visible}
.ipyrefine .rf-code code{display:block}
.ipyrefine.ipyrefine .rf-plain{padding:0 14px;overflow:auto;white-space:pre}
.ipyrefine .rf-l{display:inline-block;width:100%;position:relative;padding:0 14px 0 7ch;
text-indent:-5ch;text-decoration:none;color:inherit;overflow-wrap:anywhere;vertical-align:top}
.ipyrefine .rf-n{color:var(--rf-quiet);user-select:none;-webkit-user-select:none}
.ipyrefine ins.rf-add{background:rgba(46,160,67,.14)}
.ipyrefine del.rf-del{background:rgba(248,81,73,.13)}
.ipyrefine .rf-add mark{background:rgba(46,160,67,.32)}
.ipyrefine .rf-del mark{background:rgba(248,81,73,.3)}
.ipyrefine .rf-fold>summary{color:var(--rf-quiet);font-size:12px;padding:1px 14px 1px 7ch;
background:var(--rf-surface);list-style:none;border-radius:0;font-family:var(--rf-mono)}
.ipyrefine .rf-fold>summary::-webkit-details-marker{display:none}
.ipyrefine :is(pre.rf-text,.rf-sides){background:var(--rf-surface);color:inherit;
border:1px solid var(--rf-line);border-radius:5px;padding:.45em .75em;margin:.3em 0;
max-height:24rem;overflow:auto}
.ipyrefine pre.rf-text{font-family:var(--rf-mono);font-size:12.5px;line-height:1.45;
white-space:pre;overflow-wrap:normal;tab-size:4}
.ipyrefine pre.rf-wrap{white-space:pre-wrap;overflow-wrap:anywhere}
.ipyrefine.ipyrefine pre{word-break:normal}
.ipyrefine.ipyrefine pre code{font:inherit;background:none;color:inherit;padding:0;
white-space:inherit}
.ipyrefine .rf-prose{white-space:pre-wrap;font-size:14px;line-height:1.6;padding:4px 18px;
max-width:46rem;font-family:var(--jp-content-font-family,inherit)}
.ipyrefine ins,.ipyrefine del{text-decoration-thickness:1px;border-radius:2px}
.ipyrefine .rf-prose ins{background:rgba(46,160,67,.17);text-decoration:none;color:inherit}
.ipyrefine .rf-prose del{background:rgba(248,81,73,.13);color:var(--rf-quiet)}
.ipyrefine .rf-prose del+ins{margin-left:.2em}
.ipyrefine .rf-prose mark{box-shadow:inset 0 -2px var(--rf-warn)}
.ipyrefine mark{background:rgba(210,160,30,.28);color:inherit;border-radius:2px}
.ipyrefine .rf-columns{display:grid;grid-template-columns:1fr 1fr;gap:.6em}
.ipyrefine .rf-sides{padding:0;font-size:12.5px;margin:0 14px}
.ipyrefine .rf-sides table{width:100%;table-layout:fixed;border-collapse:collapse}
.ipyrefine.ipyrefine .rf-sides td{padding:0;vertical-align:top;border:0;text-align:left}
.ipyrefine.ipyrefine .rf-sides pre{margin:0;padding:0;background:none;border:0;
font-family:var(--rf-mono);white-space:pre-wrap;overflow-wrap:anywhere}
.ipyrefine .rf-sides td+td{border-left:1px solid var(--rf-line)}
@container (max-width:620px){.ipyrefine .rf-columns{grid-template-columns:1fr}}
.ipyrefine .rf-wide{overflow-x:auto}
.ipyrefine.ipyrefine .rf-wide :is(th,td){white-space:nowrap}
.ipyrefine .rf-table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.ipyrefine.ipyrefine .rf-table :is(th,td){padding:.15em .7em;text-align:right;border:0;
border-bottom:1px solid var(--rf-line)}
.ipyrefine.ipyrefine .rf-table th:first-child{text-align:left}
"""

_ROWS = """
.ipyrefine .rf-finding{display:flex;flex-wrap:wrap;gap:2px 10px;align-items:flex-start;
margin:3px 14px 5px 7ch;padding:3px 10px;border:1px solid var(--rf-line);border-radius:4px;
border-left:3px solid var(--rf-warn);font-size:12.5px;line-height:1.45}
.ipyrefine .rf-finding>div{flex:1 1 20em;min-width:0}
.ipyrefine .rf-finding.rf-fixed{border-left-color:var(--rf-good);color:var(--rf-quiet)}
.ipyrefine .rf-finding.rf-minor{border-left-color:var(--rf-line)}
.ipyrefine .rf-finding b{font-weight:600}
.ipyrefine small{font-size:11.5px;color:var(--rf-quiet)}
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
@media print{.ipyrefine :is(pre.rf-text,.rf-sides){max-height:none;white-space:pre-wrap}}
"""


def _token(selectors: str, variable: str, fallback: str) -> str:
    """Return the rule for a kind of token: the front-end's own colour, else ours."""
    scoped = ",".join(f".ipyrefine .rf-t-{name}" for name in selectors.split())
    return f"{scoped}{{color:var(--jp-mirror-editor-{variable}-color,var({fallback}))}}"


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

_RULES = "".join((_VARIABLES, _LAYOUT, _LABELS, _DETAILS, _TEXT, _ROWS, _TOKENS))
STYLE = _RULES.strip().replace("\n\n", "\n")  # a blank line would end it in a Markdown export
