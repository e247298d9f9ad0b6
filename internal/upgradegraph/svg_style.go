package upgradegraph

// style of the picture; each lane has one of laneColors as its current colour.
const style = `
text{font:13px sans-serif;fill:#1f2328}
.title{font-size:18px;font-weight:bold}
.version{font-family:monospace;font-weight:bold}
.minor,.missing{fill:#59636e}
.head{fill:currentColor}
.missing{font-weight:normal;font-style:italic}
text.old,.version.old{fill:#59636e;font-weight:normal;text-decoration:line-through}
.paper{fill:#fff}
.row rect{fill:#fff}
.row:hover rect{fill:#f0f3f6}
.row path{stroke:#e3e7eb}
path{fill:none}
.line,.tip,.dashed,.dotted{stroke:currentColor;stroke-width:3}
.tip,.dashed{stroke-width:1.5}
.dashed{stroke-dasharray:4 3}
.dotted{stroke-width:2;stroke-dasharray:0 5;stroke-linecap:round}
.dot{stroke:currentColor;stroke-width:11;stroke-linecap:round;pointer-events:none}
.dot.ring{stroke-width:19}
.dot.gap{stroke:#fff;stroke-width:15}
.dot.hole{stroke:#fff;stroke-width:7}
.dot.old{stroke:#afb8c1}
.path{stroke:#ffc2dd;stroke-width:9;stroke-linecap:round;stroke-linejoin:round}
.path.label{stroke-width:18}
.l0{color:#0969da}.l1{color:#1a7f37}.l2{color:#8250df}.l3{color:#bc4c00}.l4{color:#0b7285}.l5{color:#7d6608}.l6{color:#57606a}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}
.minor,.missing,text.old,.version.old{fill:#9198a1}
.paper,.row rect{fill:#0d1117}
.row:hover rect{fill:#1b222b}
.row path{stroke:#262c34}
.dot.gap,.dot.hole{stroke:#0d1117}
.dot.old{stroke:#57606a}
.path{stroke:#631c43}
.l0{color:#58a6ff}.l1{color:#3fb950}.l2{color:#bc8cff}.l3{color:#f0883e}.l4{color:#39c5cf}.l5{color:#d4b106}.l6{color:#9198a1}
}
`
