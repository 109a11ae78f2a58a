// The report's only style; its hash stands in the report's own Content-Security-Policy.
export const reportStyle = `
:root{--page:#f6f7f9;--card:#fff;--ink:#16181d;--quiet:#566070;--line:#dde1e8;--blue:#2563eb;--green:#11692f;--red:#b42a24;--orange:#a64808;--violet:#6d28d9;--teal:#0c635c;--gray:#8a91a0}
@media (prefers-color-scheme:dark){:root{--page:#0e1116;--card:#161a21;--ink:#e6e9ef;--quiet:#9aa3b2;--line:#2a303b;--blue:#6ea8fe;--green:#56c27a;--red:#f58a84;--orange:#f0a35e;--violet:#b794f6;--teal:#4fc4b8;--gray:#808a9c}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.45 system-ui,sans-serif}
main{max-width:1300px;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;margin:.2rem 0;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:1.2rem 0 .5rem}
h3{font-size:.95rem;overflow-wrap:anywhere}
small,header p{color:var(--quiet)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem}
.tile,figure,article,.findings>li,details{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.55rem .8rem;margin:0 0 .5rem}
.tile{display:flex;flex-direction:column;margin:0}
.tile b{font-size:1.4rem}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));gap:.7rem}
figure{margin:0}
svg{width:100%;height:auto;display:block;font-size:11px;fill:var(--quiet)}
.grid{stroke:var(--line)}
.line{fill:none;stroke-width:1.6}
.dashed{stroke-dasharray:5 4}
.area{opacity:.8}
.blue{--hue:var(--blue)}.green{--hue:var(--green)}.red{--hue:var(--red)}.orange{--hue:var(--orange)}.violet{--hue:var(--violet)}.teal{--hue:var(--teal)}.gray{--hue:var(--gray)}
.line{stroke:var(--hue)}.area,.dot{fill:var(--hue)}
.legend{margin:.2rem 0 0;display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:12px;color:var(--quiet)}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em}
.key{background:var(--hue)}.key.dashed{mask:repeating-linear-gradient(90deg,#000 0 3px,#0000 3px 5px)}
.programs{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,22rem),1fr));gap:.7rem;align-items:start}
article{min-width:0;border-top:3px solid var(--gray)}
article.pass{border-top-color:var(--green)}article.fail{border-top-color:var(--red)}article.format{border-top:3px dashed var(--violet)}article.format b{color:var(--violet)}
blockquote{margin:.2rem 0 .6rem;padding:.1rem .8rem;border-left:3px solid var(--line);white-space:pre-wrap;overflow-wrap:anywhere;max-width:90ch}
pre,code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12.5px}
pre{background:var(--page);border-radius:6px;padding:.45rem .6rem;margin:.2rem 0;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;max-height:22rem}
dl{display:grid;grid-template-columns:auto minmax(0,1fr);gap:.1rem .6rem;margin:0}
dt{color:var(--quiet);padding-top:.4rem}dd{margin:0}
mark{background:#f7d9a4;color:#5a3300;border-radius:3px;padding:0 2px}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.2rem .6rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere;vertical-align:top}
.findings{list-style:none;padding:0}.findings details{background:none;border:0;padding:0;margin:.3rem 0 0}
.findings .error{border-left:4px solid var(--red)}.findings .warning{border-left:4px solid var(--orange)}.findings .note{border-left:4px solid var(--blue)}
.bad{color:var(--red)}
.py-keyword{color:var(--violet)}.py-string{color:var(--green)}.py-comment{color:var(--quiet);font-style:italic}.py-number{color:var(--orange)}.py-builtin{color:var(--teal)}.py-defined{color:var(--blue);font-weight:600}
@media print{details{break-inside:avoid}article,figure{break-inside:avoid}}
`;
