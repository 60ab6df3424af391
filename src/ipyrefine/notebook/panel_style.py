"""How the panel's controls look; the texts among them have the record's style sheet."""

# Two classes each, because the widgets' own sheet sets fixed widths and line heights with two.
# The page's half fills a stream's place when its animation says that it is there.
# The summary can stay in view only if no box around the panel cuts off what leaves it, and Notebook
# of its own accord puts an output into one of a few lines as soon as that is tall.
PANEL_STYLE = """
:is(.jp-OutputArea-output,.jp-OutputArea-child,
.jp-CodeCell:not(.jp-mod-outputsScrolled) .jp-OutputArea):has(.rf-panel){overflow:visible}
body[data-notebook=notebooks] .jp-mod-outputsScrolled>* .jp-Cell-outputArea:has(.rf-panel){
overflow:visible;max-height:none;resize:none}
body[data-notebook=notebooks] .jp-mod-outputsScrolled>* .jp-Cell-outputArea:has(.rf-panel)::after{
display:none}
.ipyrefine.rf-panel,.ipyrefine .widget-vbox,.ipyrefine .widget-hbox{overflow:visible}
.ipyrefine .widget-html{margin:0;height:auto;width:auto}
.ipyrefine .widget-html>.widget-html-content{line-height:1.5;font-size:13px;min-width:0}
.ipyrefine .rf-top{position:sticky;top:0;z-index:2;
background:var(--jp-layout-color0,var(--vscode-editor-background,Canvas));
border-bottom:1px solid var(--rf-line)}
.ipyrefine .rf-top p{margin:.2em 0}
.ipyrefine .rf-actions{flex-flow:row wrap;gap:.45em .5em;align-items:center;padding:.3em 0}
.ipyrefine .rf-actions>*{margin:0;width:auto;max-width:100%;height:auto}
.ipyrefine .rf-actions .jupyter-button{width:auto;min-height:28px;padding:0 .9em;
border-radius:5px}
.ipyrefine .rf-actions .widget-label{width:auto;margin-right:.4em;overflow:visible}
.ipyrefine .rf-actions select{width:auto;min-width:5.5em}
.ipyrefine .rf-actions input[type=number]{width:4em}
.ipyrefine .rf-actions input[type=checkbox]{flex:0 0 auto;width:auto;margin:0 .4em 0 0}
.ipyrefine .jupyter-button:focus-visible{outline:2px solid var(--rf-accent);outline-offset:1px}
.ipyrefine .rf-words{flex-direction:column;align-items:stretch;width:auto;height:auto;
margin:.3em 0}
.ipyrefine .rf-words>.widget-label{width:auto;height:auto;overflow:visible;max-width:none;
text-align:left;white-space:normal;line-height:1.5;margin:0}
.ipyrefine .rf-grow{flex:1 1 22em;min-width:0}
.ipyrefine .rf-grow p{margin:.15em 0}
.ipyrefine .rf-actions .widget-checkbox{width:auto;min-width:3.4em}
.ipyrefine .rf-ledger .rf-actions{border-top:1px solid var(--rf-line);align-items:flex-start}
.ipyrefine .rf-ledger .widget-checkbox{flex:0 0 3.6em;width:3.6em;min-width:0}
.ipyrefine .rf-ledger .widget-checkbox input{flex:0 0 auto;width:auto;margin:.2em .5em 0 0}
.ipyrefine .rf-field{width:100%;height:auto;margin:.15em 0}
.ipyrefine .rf-field>.widget-label{flex:0 0 5em;min-width:5em;text-align:left}
.ipyrefine .rf-mono textarea{font-family:var(--rf-mono);font-size:12.5px}
.ipyrefine .rf-words>textarea{min-height:3.2em;width:100%}
.ipyrefine .rf-live{flex-flow:row wrap;align-items:baseline;column-gap:.5em}
.ipyrefine .rf-live .rf-written{flex:1 0 100%}
@keyframes rf-here{from{opacity:.9}}
.ipyrefine .rf-stream{animation:rf-here 1ms}
"""
