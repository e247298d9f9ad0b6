// Package helmchart renders the templates of Helm charts with Helm's own engine: files and
// values -> the documents of what is to be applied.
//
// Templates are programs of strangers, and nothing inside of a process can end one that
// runs away: neither a context nor a writer that fails is looked at by a loop that writes
// nothing, and a single call can ask for more memory than there is. So a chart is rendered
// by a process of its own, which is this same program once more: see [Serve]. The kernel
// bounds its memory and its time on a processor, it gets nothing of the environment of this
// one and no files but its standard streams, and its answer is bounded by who reads it.
//
// The engine gets no cluster: lookup finds nothing. Where it may, the process gets two more pipes,
// and asks whoever has started it, see [bundle.ChartLookup]. It reads no files but those of the
// chart, resolves no names and fetches nothing.
package helmchart
