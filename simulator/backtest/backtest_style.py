"""The style sheet of a backtest's page: wide and narrow, light and dark, screen and paper."""

from simulator.reports import palette

STYLE_SHEET = f"""\
{palette.css()}
*{{box-sizing:border-box}}
body{{margin:0 auto;max-width:74rem;padding:1.5rem 1.25rem 4rem;background:var(--page);
 color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}}
h1{{font-size:1.05rem;font-weight:600;margin:0;overflow-wrap:anywhere}}
h2{{font-size:1.15rem;margin:2.6rem 0 .4rem}}
h3{{font-size:.95rem;margin:0 0 .3rem}}
p{{margin:.4rem 0;max-width:46rem}}
.quiet,figcaption,caption,dt,.about{{color:var(--quiet)}}
.about{{font-size:.9rem;margin:0}}
.verdict{{margin:1.1rem 0 0;padding:1.1rem 1.3rem 1rem;border-radius:.6rem;background:var(--panel);
 border-left:.5rem solid var(--tone)}}
.verdict strong{{display:block;font-size:2.1rem;line-height:1.15;color:var(--tone)}}
.verdict p{{font-size:1.2rem;max-width:60rem;margin:.35rem 0 0}}
.verdict p.details{{font-size:.95rem}} .details:empty{{display:none}}
.turn-on{{--tone:var(--good)}} .observe{{--tone:var(--careful)}}
.not-worth-it{{--tone:var(--bad)}} .indication{{--tone:var(--careful)}}
.too-little-data{{--tone:var(--quiet)}}
.numbers{{display:grid;grid-template-columns:repeat(3,1fr);gap:1rem;margin:1rem 0 0}}
.numbers div{{background:var(--panel);border-radius:.6rem;padding:.8rem 1rem}}
.numbers span{{display:block}}
.numbers .value{{font-size:1.75rem;font-weight:650;line-height:1.25;
 font-variant-numeric:tabular-nums}}
.numbers .value i{{font-style:normal;color:var(--quiet);font-weight:400}}
.numbers .change{{font-size:.92rem}}
.good{{color:var(--good)}} .bad{{color:var(--bad)}}
.pictures{{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:1.6rem 1.8rem;
 margin-top:1.6rem}}
figure{{margin:0;break-inside:avoid}}
figure svg{{display:block;width:100%;height:auto}}
figcaption{{font-size:.85rem;line-height:1.4}}
.tables{{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:1.6rem 1.8rem}}
.scroll{{overflow-x:auto;break-inside:avoid}}
table{{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}}
caption{{text-align:left;padding-bottom:.2rem;font-weight:600;color:var(--text)}}
th,td{{text-align:right;padding:.22rem 0 .22rem .9rem;border-bottom:1px solid var(--grid)}}
th{{font-weight:500;color:var(--quiet);vertical-align:bottom}}
td{{white-space:nowrap}}
th:first-child,td:first-child{{text-align:left;padding-left:0;white-space:normal;
 min-width:5rem;overflow-wrap:break-word}}
small{{display:block;font-size:.78em;color:var(--quiet);font-weight:400;margin-left:1.1rem}}
tr.force td{{font-weight:650}}
td:first-child b{{display:inline-block;width:.65rem;height:.65rem;border-radius:50%;
 margin-right:.45rem;background:var(--mark)}}
dl{{font-size:.88rem;margin:.6rem 0}}
dl div{{display:grid;grid-template-columns:11rem 1fr;gap:0 1rem;margin-bottom:.25rem}}
dd{{margin:0;overflow-wrap:anywhere}}
code{{font:.92em ui-monospace,monospace}}
@media (max-width:60rem){{.pictures,.tables{{grid-template-columns:1fr}}}}
@media (max-width:44rem){{
 body{{padding:1rem .9rem 3rem}}
 .numbers{{grid-template-columns:1fr}}
 .verdict{{padding:.9rem 1rem}} .verdict strong{{font-size:1.6rem}} .verdict p{{font-size:1.05rem}}
 dl div{{grid-template-columns:1fr;margin-bottom:.5rem}}
 .extra{{display:none}} .range{{display:block}}
 table{{font-size:.8rem}} th,td{{padding-left:.55rem}}}}
@media print{{
 @page{{size:A4;margin:9mm 10mm}}
 body{{max-width:none;padding:0;font-size:8.6pt;line-height:1.32}}
 h1{{font-size:9.5pt}} h2{{font-size:10.5pt;margin:3mm 0 1mm;break-after:avoid}}
 .about,figcaption,table,dl{{font-size:7.3pt}} p{{max-width:none;margin:.6mm 0}}
 .verdict{{margin-top:2mm;padding:2.5mm 4mm;print-color-adjust:exact}}
 .verdict strong{{font-size:18pt}} .verdict p{{font-size:9.5pt;max-width:none}}
 .verdict p.details{{font-size:7.8pt}}
 .numbers{{gap:3mm;margin-top:2.5mm}} .numbers div{{padding:2mm 3mm;print-color-adjust:exact}}
 .numbers .value{{font-size:14pt}} .numbers .change{{font-size:7.6pt}}
 .pictures{{grid-template-columns:1fr 1fr;gap:2mm 9mm;margin-top:2mm}}
 section:nth-of-type(n+6) .pictures{{padding:0 12mm}} p.quiet{{font-size:7.3pt}}
 small{{display:inline;margin-left:1mm}}
 .tables{{grid-template-columns:repeat(3,1fr);gap:2.5mm 5mm}}
 table{{font-size:6.9pt}} th,td{{padding:.2mm 0 .2mm 1.2mm;line-height:1.25}}
 th:first-child,td:first-child{{white-space:nowrap}} h3+table{{margin:0}}
 h3{{font-size:8pt;margin:0}}
 dl{{columns:2;column-gap:6mm;margin:1mm 0}}
 dl div{{grid-template-columns:24mm 1fr;gap:0 2mm;margin:0 0 .3mm;break-inside:avoid}}
 th:first-child,td:first-child{{min-width:0}}
 td b{{print-color-adjust:exact}}}}
"""
